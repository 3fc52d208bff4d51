"""Chromium, and a site of hostile runs for it."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Message
from passnet.core.records.serialise import LineWriter
from passnet_site.pages.build import build_site, read_parts
from tests.agent.attempts import attempt, chat, evaluation, folder, turn
from tests.pages.site.runs import (
    HOSTILE,
    hostile_suite,
    write_hostile_passes,
    write_hostile_study,
    write_run,
)

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'passnet[browser]'"
    )
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def write_attempts(out: Path) -> Path:
    """Attempts by an llm, one with hostile messages of which one is long, and a cheat."""
    out.mkdir()
    long = Message("user", f"{HOSTILE}\n" + "word " * 6000 + "the very last")
    files = (
        folder(f"# {HOSTILE}\ndef replacement(x, y):\n    return x + y\n"),
        folder("def replacement(x, y):\n    return y + x\n"),
    )
    evaluations = (
        evaluation(1, 0.5, passing=False, **files[0]),
        evaluation(2, None, findings=("constant_output",), **files[0]),
        evaluation(3, 1.5, **files[1]),
    )
    messages = (
        *chat("create", "evaluate", "submit", note=HOSTILE),
        long,
        *turn(7, HOSTILE, text=f"{HOSTILE}\nsecond line"),
    )
    made = attempt(messages=messages, evaluations=evaluations, best=2, error=HOSTILE)
    with LineWriter(out / ATTEMPTS_FILE) as writer:
        writer.write(made)
        writer.write(replace(made, number=1, llm=f"llm/{HOSTILE}", task=f"task {HOSTILE}"))
    return out


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("site")
    suite = hostile_suite(24)
    run = write_run(base / "run", suite, write_hostile_passes(base / "mine"))
    paths = [run, write_attempts(base / "attempts"), write_hostile_study(base / "study")]
    parts = read_parts(paths, None, [suite], None)
    build_site(parts, base / "out", f"Title {HOSTILE}")
    return base / "out"
