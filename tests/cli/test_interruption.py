"""Ctrl-C and SIGTERM in the middle of long work: what is kept is said, and no process stays."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest

from passnet.cli.terminal.interruption import _outlook
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.data.dataset.store import write_dataset
from passnet_exchange.pairs.command import import_kernelbench_command
from passnet_loops.data.build import read_training, write_rows
from tests.bench.runs import command, write_small_suite
from tests.data.dataset.test_build import captured, net, row
from tests.judge.suite.test_assembly import ADD_RELU
from tests.judge.suite.test_assembly import row as subgraph_row
from tests.processes import runs, wait_until

SHIPPED = Path(__file__).parents[2] / "training"

NET = """
import subprocess
def net():
    subprocess.run(["sleep", "60"], start_new_session=True)
"""
"""A net whose capture starts a process that no terminal and no parent would end."""

ENDED_WITHIN_S = 20
"""What ends on its own takes minutes; how fast an interruption is, a busy machine cannot show."""


def descendants(pid: int) -> list[int]:
    """The processes below one."""
    below = [pid]
    for parent in below:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                below += map(int, task.read_text().split())
            except OSError:
                continue
    return below[1:]


def interrupt(
    words: list[object],
    number: signal.Signals,
    is_begun: Callable[[list[int]], bool],
    within_s: float = ENDED_WITHIN_S,
) -> str:
    """What a command says that is interrupted once it has begun; it leaves no process."""
    process = subprocess.Popen(
        command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    below: set[int] = set()

    def has_begun() -> bool:
        assert process.poll() is None, process.stderr
        below.update(descendants(process.pid))
        return is_begun(sorted(below))

    wait_until(has_begun, "the command does not begin", 60)
    start = time.monotonic()
    process.send_signal(number)
    _, text = process.communicate(timeout=ENDED_WITHIN_S)
    assert process.returncode == 128 + number, text
    assert time.monotonic() - start < within_s * max(1, os.getloadavg()[0])
    wait_until(lambda: not any(map(runs, below)), "a process stays", 5)
    (line,) = [line for line in text.splitlines() if line.startswith("passnet: ")]
    return line


def bench_words(tmp_path: Path) -> list[object]:
    suite = write_small_suite(tmp_path / "small.parquet", 6)
    return ["bench", "run", "--suite", suite, "--candidate", "eager", "--candidate", "null@direct",
            "--out", tmp_path / "run", "--seconds", "0.5", "--self-tolerance", "1e9"]  # fmt: skip


def test_an_interrupted_run_says_how_many_trials_are_kept_and_how_to_go_on(tmp_path: Path) -> None:
    trials = tmp_path / "run" / "trials.jsonl"
    line = interrupt(
        bench_words(tmp_path),
        signal.SIGINT,
        lambda below: bool(below) and trials.exists() and trials.read_bytes().count(b"\n") >= 2,
    )
    count = trials.read_bytes().count(b"\n")
    assert line.startswith(f"passnet: interrupted; {count} trials are kept in {tmp_path / 'run'}; ")
    assert line.endswith("to go on: passnet " + line.split("passnet ")[-1])
    assert "bench run" in line and line.endswith(" --resume")


FAILS_TO_PUT_AWAY = """
import os, signal
from passnet.cli import main

@main.command("break")
def broken():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        raise KeyError("what was put away")

main(["break"])
"""


def test_an_error_that_follows_an_interrupt_does_not_hide_it() -> None:
    words = [sys.executable, "-c", FAILS_TO_PUT_AWAY]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 130 and done.stderr.startswith("passnet: interrupted; "), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_ended_run_of_an_author_leaves_no_process(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    words = ["agent", "run", "--suite", suite, "--author", "search", "--out", tmp_path / "out"]
    line = interrupt(words, signal.SIGTERM, lambda below: len(below) > 2)
    assert line.startswith("passnet: ended by SIGTERM; nothing is finished yet; to go on: passnet ")
    assert line.endswith(" --resume")


@pytest.mark.slow
def test_what_jobs_have_started_is_ended_with_them(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(NET)
    words = ["extract", f"{own}:net", "--out", tmp_path / "out", "--jobs", "2"]

    def sleeps(below: list[int]) -> bool:
        names = (Path(f"/proc/{pid}/comm") for pid in below)
        return any(name.exists() and name.read_text() == "sleep\n" for name in names)

    line = interrupt(words, signal.SIGTERM, sleeps)
    assert "nothing is finished yet; to go on: passnet extract " in line


@pytest.mark.slow
def test_a_run_that_waits_for_the_lock_of_the_machine_can_be_interrupted(tmp_path: Path) -> None:
    import fcntl
    import tempfile

    from passnet.judge.protocol.device import lock_name

    path = Path(tempfile.gettempdir()) / f"passnet-{lock_name('cpu')}.lock"
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        start = time.monotonic()
        line = interrupt(
            bench_words(tmp_path),
            signal.SIGINT,
            lambda below: bool(below) and time.monotonic() - start > 15,
        )
    assert "nothing is finished yet" in line and line.endswith(" --resume")


def kept_when_interrupted(words: list[object], records: Path, unit: str) -> None:
    """What a command says and keeps that is interrupted after two records; `--resume` goes on."""
    line = interrupt(
        words,
        signal.SIGINT,
        lambda below: records.exists() and records.read_bytes().count(b"\n") >= 2,
        within_s=2,
    )
    lines = records.read_bytes().splitlines(keepends=True)
    count = len([text for text in lines if text.endswith(b"\n")])
    assert f"passnet: interrupted; {count} {unit} are kept in {records.parent}; to go on: " in line
    assert line.endswith(" --resume") and f"passnet {words[0]} {words[1]} " in line
    begun = command(*words, "--resume")
    done = subprocess.run(begun, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert records.read_bytes().startswith(b"".join(lines[:count]))


@pytest.mark.slow
def test_an_interrupted_dataset_says_how_many_graphs_are_mined_and_how_to_go_on(
    tmp_path: Path,
) -> None:
    rows = [row(net(blocks, width), f"lib/{blocks}-{width}")
            for blocks in range(9, 13) for width in (8, 16)]  # fmt: skip
    folder, out = captured(tmp_path / "set", rows), tmp_path / "out"
    words = ["dataset", "build", folder, "--out", out, "--dtype", "none"]
    kept_when_interrupted(words, out / "graphs.jsonl", "mined graphs")


@pytest.mark.slow
def test_an_interrupted_suite_says_how_many_graphs_are_tried_and_how_to_go_on(
    tmp_path: Path,
) -> None:
    rows = [
        subgraph_row(body, x=(8, width), y=(8, width))
        for body in (ADD_RELU, ADD_RELU.replace("+", "*"), ADD_RELU.replace("relu", "tanh"))
        for width in (2**k for k in range(3, 15))
    ]
    folder, work = tmp_path / "data", tmp_path / "work"
    folder.mkdir()
    write_dataset(folder, rows, {"timm": ["1.0"]})
    words = ["suite", "make", folder, "--out", tmp_path / "made.parquet", "--work", work,
             "--tasks", "2", "--jobs", "2"]  # fmt: skip
    kept_when_interrupted(words, work / "admissions.jsonl", "admissions")


@pytest.mark.slow
def test_interrupted_judging_says_how_many_rows_are_judged_and_how_to_go_on(
    tmp_path: Path,
) -> None:
    if not SHIPPED.exists():
        pytest.skip("no training data beside the package")
    manifest, rows = read_training(SHIPPED)
    few = [replace(row, verdict="not judged") for row in rows if row.words < 60][:12]
    write_rows(tmp_path / "data", few, manifest.evaluation, Counter())
    words = ["train", "judge", tmp_path / "data", "--out", tmp_path / "out"]
    kept_when_interrupted(words, tmp_path / "out" / "verdicts.jsonl", "judged rows")


OUTLOOK_OF_SERVICE = """
import sys
from pathlib import Path
import click
from passnet.cli.terminal.interruption import _outlook
from passnet_service.command import judge_serve
sys.argv = ["passnet", "judge", "serve", "--out", "kept"]
context = click.Context(judge_serve)
context.params = {"out": Path("kept")}
print(_outlook(context))
"""


def test_a_service_says_that_its_answers_are_kept() -> None:
    command = [sys.executable, "-c", OUTLOOK_OF_SERVICE]  # where no other run has begun
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    again = "to go on: passnet judge serve --out kept"
    assert done.stdout == f"all that is finished is kept in kept; {again}\n"


@dataclass(frozen=True)
class Info:
    seed: int = 0


def test_results_are_named_where_the_run_is_that_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["passnet", "suite", "import", "kernelbench", "KB"])
    context = click.Context(import_kernelbench_command)
    context.params = {"out": tmp_path / "kb.parquet", "folder": tmp_path}
    again = "to go on: passnet suite import kernelbench KB --resume"
    folder = tmp_path / "kb.work"
    run = RunFolder(folder, "info.json", Info, "lines.jsonl", Info, str, "captured problems")
    with run.begin(Info(), False, unchanged("")):
        assert f"{folder}; " not in _outlook(context)
        with run.recorder(0) as store:
            store(Info(1))
        assert f"1 captured problem is kept in {folder}" in _outlook(context)
        assert _outlook(context).endswith(again)
