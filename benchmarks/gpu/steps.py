"""The steps in the order of their worth, and the line that each adds to the table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from benchmarks.gpu import agreement, launches
from benchmarks.gpu.running import Step, read_state
from passnet.bench.run_record import TRIALS_FILE, run_folder
from passnet.bench.scores import read_rows, score_rows, untimed_candidates
from passnet.core.records.serialise import has_lines
from passnet.errors import InputError, MeasureError
from passnet.judge.protocol.device import find_device
from passnet.pages.tables.tables import phase_table

PYTHON = (sys.executable, "-m")
RECORDS = "records.jsonl"
RUN = "run"
WRITTEN = "written"

BASELINES = ("eager", "null", "inductor", "inductor@direct", "examples/triton",
             "examples/triton@direct")  # fmt: skip


@cache
def gpu_missing() -> str:
    """Return why there is no GPU here, in a sentence; empty where there is one."""
    try:
        find_device("cuda")
    except InputError as cause:
        return str(cause)
    return ""


def triton_missing() -> str:
    """Return what to install for Triton; empty where it is there."""
    return "" if find_spec("triton") else "triton is not here; pip install 'passnet[cuda]'"


def _passnet(*words: object) -> tuple[str, ...]:
    return (*PYTHON, "passnet.cli", *map(str, words))


def _bench(suite: str, out: Path, candidates: Sequence[str]) -> tuple[str, ...]:
    named = [word for name in candidates for word in ("--candidate", name)]
    return _passnet("bench", "run", "--suite", suite, "--device", "cuda", "--out", out, "--resume",
                    *named)  # fmt: skip


def _aa(folder: Path) -> list[tuple[str, ...]]:
    return [(*PYTHON, "benchmarks.gpu.agreement", str(folder / RECORDS))]


def _aa_result(folder: Path) -> str:
    rows = agreement.table(agreement.rounds(folder / RECORDS)).rows
    return "; ".join(f"{row[0]}: {row[6]} % ± {row[7]} %" for row in rows)


def _trial_result(folder: Path) -> str:
    """Return the seconds of a trial, and the phases that take most of them."""
    run = folder / RUN
    if not has_lines(run / TRIALS_FILE):
        return ""
    trials = list(run_folder(run).records().values())
    seconds = read_state(folder).seconds
    parts = (f"{name} {share} %" for name, _, share in phase_table(trials, seconds).rows[:4])
    return f"{seconds / len(trials):.1f} s for each of {len(trials)} ({', '.join(parts)})"


def _suite(folder: Path) -> list[tuple[str, ...]]:
    written = folder / WRITTEN
    own = [f"{written / 'passes'}@guarded"]
    return [
        _bench("demo", folder / RUN, BASELINES),
        _passnet("agent", "run", "--suite", "demo", "--author", "compiler", "--device", "cuda",
                 "--seconds", "0.1", "--out", written, "--resume"),
        _bench("demo", folder / RUN, own),
    ]  # fmt: skip


def _suite_result(folder: Path) -> str:
    try:
        rows = read_rows(folder / RUN)
        timed = [row for row in rows if row.candidate not in untimed_candidates(rows)]
        scores = score_rows(timed)
    except (InputError, MeasureError):
        return ""
    texts = (f"{each.candidate.rpartition('/')[2]} {each.suite.score:.2f}" for each in scores)
    return f"AS of {len({row.graph for row in rows})} graphs: {', '.join(texts)}"


def _launches(folder: Path) -> list[tuple[str, ...]]:
    return [(*PYTHON, "benchmarks.gpu.launches", str(folder / RECORDS))]


def _launches_result(folder: Path) -> str:
    counts = launches.counts(folder / RECORDS)
    same = sum(each.planned == each.launched for each in counts)
    return f"{same} of {len(counts)} graphs as planned" if counts else ""


def _attacks(_: Path) -> list[tuple[str, ...]]:
    return [_passnet("judge", "audit", "--device", "cuda", "tests/exploits/gpu")]


def _rest(_: Path) -> list[tuple[str, ...]]:
    return [
        (*PYTHON, "pytest", "-q", "-n", "0", "-m", "gpu"),
        _passnet("judge", "roofline", "--device", "cuda", "--again"),
    ]


def _compiled(_: Path) -> list[tuple[str, ...]]:
    tests = (*PYTHON, "pytest", "-q", "-n", "0", "tests/passes/test_triton_examples.py", "-k")
    chosen = ("compiles_for_a_gpu", "other_shapes", "not compiles_for_a_gpu and not other_shapes")
    return [(*tests, words) for words in chosen]


def last_line(folder: Path) -> str:
    """Return the last line of the first command that has printed any."""
    for path in sorted(folder.glob("*.out")):
        if lines := path.read_text(encoding="utf-8", errors="replace").strip().splitlines():
            return lines[-1].strip("= ")
    return ""


STEPS = (
    Step("aa", "eager against itself: ratio and its spread", _aa, _aa_result, gpu_missing),
    Step("trial", "seconds of a trial", lambda folder: [_bench("demo-small", folder / RUN,
         ("eager", "null"))], _trial_result, gpu_missing),
    Step("suite", "the demo suite", _suite, _suite_result, gpu_missing),
    Step("launches", "kernels that start, and plans", _launches, _launches_result, gpu_missing),
    Step("attacks", "exploits that need a GPU", _attacks, last_line, gpu_missing),
    Step("rest", "tests on a GPU, and its rates", _rest, last_line, gpu_missing),
    Step("compiled", "Triton for sm_80 and sm_90, and interpreted, without a GPU", _compiled,
         last_line, triton_missing),
)  # fmt: skip
