"""A worker's messages are checked where they are decoded, and their size is limited."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from passnet.bench.run import run_suite
from passnet.core.jobs.run_plan import RunPlan
from passnet.errors import GraphError
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.desk.judge_task import judge_task
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.judge import judge_graph
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.channel import MAX_REPLY_BYTES, NoMessageError, channel_pair
from passnet.judge.protocol.messages import (
    MAX_REPORTS,
    Fetched,
    Loaded,
    OutputForm,
    Ran,
    Reply,
    WorkerLimits,
)
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import load_suite
from passnet.judge.trial import Trial
from passnet.judge.verdict.check import Expected
from passnet.judge.verdict.compare import compare_forms
from passnet.pages.tables.tables import Table, failure_lines, markdown, print_table
from tests.bench.runs import write_small_suite
from tests.judge.fake_worker import FakeParent, framed
from tests.judge.folders import GOOD, small_graph, write_passes

pytestmark = pytest.mark.xdist_group("statuses")

QUICK = JudgeSettings(
    timing=TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3, keeps_awake=False),
    limits=WorkerLimits(4096),
    compile_timeout_s=10,
    call_timeout_s=10,
    self_tolerance=1e9,
)


def received(payload: bytes) -> Any:
    """Return the judge's reading of the bytes of a message."""
    channel, theirs = channel_pair()
    with theirs:
        theirs.sendall(framed(payload))
        return channel.receive(Reply, 5)[0]


def form(**fields: Any) -> bytes:
    """A reply with one output, a matrix of 6 times 8 but for some fields."""
    tensor = {"kind": "tensor", "dtype": "float32", "shape": [6, 8], "stride": [8, 1]}
    reply = {"type": "Ran", "outputs": [tensor | fields], "matches": [], "seconds": 1}
    return json.dumps(reply).encode()


def ran(**fields: Any) -> bytes:
    """A reply without outputs, but for some fields."""
    return json.dumps({"type": "Ran", "outputs": [], "matches": [], "seconds": 1} | fields).encode()


REFUSED = {
    "strides that are negative": (form(stride=[8, -1]), r"`int` >= 0 - at `\$.outputs\[0\].stride"),
    "fewer strides than sizes": (form(stride=[]), "2 sizes with 0 strides"),
    "strides out of the address space": (form(stride=[2**46, 1]), "out of the address space"),
    "sizes whose product is huge": (form(shape=[2**30, 2**30]), "more than 1099511627776 elements"),
    "a size beyond 64 bits": (form(shape=[2**64, 1]), "Expected `int` <="),
    "too many sizes": (form(shape=[1] * 33, stride=[1] * 33), "of length <= 32"),
    "a dtype that is none": (form(dtype="float7"), "dtype float7 is none of"),
    "a device that is none": (form(device="tpu"), "Invalid enum value 'tpu'"),
    "a number that is none": (form(kind="number", number="many"), "could not convert"),
    "a number without end": (form(kind="number", number="9" * 401), "of length <= 400"),
    "infinite seconds": (b'{"type":"Ran","outputs":[],"matches":[],"seconds":1e999}', "range"),
    "negative seconds": (ran(seconds=-1e-9), "`float` >= 0"),
    "not a number of seconds": (b'{"type":"Ran","outputs":[],"matches":[],"seconds":NaN}', "JSON"),
    "centuries": (ran(seconds=1e10), "`float` <= 1000000"),
    "a negative count": (ran(matches=[{"name": "a", "num_matches": -1}]), "`int` >= 0"),
    "a huge count": (ran(work=(2**60, 0, 0)), "`int` <= 9007199254740992"),
    "too many matches": (
        ran(matches=[{"name": "a", "num_matches": 1}] * (MAX_REPORTS + 1)), "length <= 1000",
    ),
    "too many outputs": (ran(outputs=[{"kind": "other"}] * 4097), "length <= 4096"),
    "text that is not UTF-8": (form(kind="other", dtype="?").replace(b"?", b"\xff"), "(?i)utf-8"),
    "brackets without end": (b'{"type":"Ran","more":' + b"[" * 50_000, "recursion"),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_a_message_is_refused_for(said: str) -> None:
    payload, reason = REFUSED[said]
    with pytest.raises(NoMessageError, match=reason):
        received(payload)


def test_the_most_that_can_be_said_is_a_message() -> None:
    whole = received(form(shape=[2**20, 2**20], stride=[2**20, 1]))
    assert whole.outputs[0].num_bytes == whole.outputs[0].span_bytes == 2**42
    assert received(form(shape=[0, 8], stride=[2**40, 1])).outputs[0].span_bytes == 0
    assert received(ran(seconds=1e6, work=(2**53, 0, 0))).seconds == 1e6


def test_a_message_that_is_too_long_is_not_read() -> None:
    channel, theirs = channel_pair()
    with theirs, pytest.raises(NoMessageError, match=f"a message of {MAX_REPLY_BYTES + 1} bytes"):
        theirs.sendall((MAX_REPLY_BYTES + 1).to_bytes(8, "little"))
        channel.receive(Reply, 5)


def test_what_is_no_message_ends_the_worker_and_says_why() -> None:
    parent = FakeParent([framed(form(stride=[]))])
    with pytest.raises(WorkerFailureError) as caught:
        parent.worker.receive(Ran, 5)
    assert (caught.value.status, caught.value.error) == ("crash", "Protocol")
    assert caught.value.text == (
        "the answer of the worker is not a message: 2 sizes with 0 strides - at `$.outputs[0]`"
    )


STEERING = "\x1b[2K\r\x1b[32mall correct\n┃ cheat ┃ AS 9.87 ┃\x1b]0;owned\x07[/bold]\u202e"
PLAIN = "all correct ┃ cheat ┃ AS 9.87 ┃[/bold]"


def test_texts_of_a_worker_become_one_plain_line_each() -> None:
    match = {"name": STEERING, "num_matches": 1, "miss": STEERING + "x" * 9999}
    [report] = received(ran(matches=[match])).matches
    assert report.name == PLAIN and report.miss.startswith(PLAIN) and len(report.miss) < 2000
    reply = {"type": "Disarmed", "observed": [{"name": STEERING, "ops": [STEERING],
             "same_as_pattern": True}]}  # fmt: skip
    [observed] = received(json.dumps(reply).encode()).observed
    assert (observed.name, observed.ops) == (PLAIN, (PLAIN,))
    failed = {"type": "Failed", "status": "runtime_error", "error": STEERING, "text": STEERING}
    assert received(json.dumps(failed).encode()).text == PLAIN
    assert received(form(kind="other", dtype=STEERING)).outputs[0].dtype == PLAIN


def test_text_in_tables_is_no_markup_and_makes_no_row() -> None:
    console = Console(width=120, force_terminal=True, color_system=None)
    with console.capture() as capture:
        print_table(console, Table("[red]T[/]", ("[bold]x",), [(STEERING,)], "[link=evil]note"))
    shown = capture.get()
    assert "[bold]x" in shown and "[/bold]" in shown and "[red]T[/]" in shown
    assert "\x1b[2K" not in shown and "\x07" not in shown and "\u202e" not in shown
    text = markdown([Table("t", ("name",), [("a\n| b | <script>",)])])
    assert text.splitlines()[-1] == "| a \\| b \\| &lt;script> |"
    linked = markdown([Table("t", ("name",), [("![x](http://evil/x.png)",)])])
    assert linked.splitlines()[-1] == "| ![x]\\(http://evil/x.png) |"
    [line] = failure_lines([Trial("task", "graph", "x\ny", "crash", error=STEERING)])
    assert line == f"x y on task: 1 × crash: {PLAIN}"


def test_a_failure_of_the_same_words_is_one_line_for_all_tasks() -> None:
    lacks = [Trial(task, "graph", "x", "compile_error", error="no Triton") for task in "abbc"]
    wrong = [Trial(task, "graph", "x", "ok") for task in "ab"]
    assert failure_lines([*lacks, *wrong]) == [
        "x on a and 2 more tasks: 4 × compile_error: no Triton",
        "x on a: 1 × wrong values: ",
        "x on b: 1 × wrong values: ",
    ]


def test_an_output_with_wide_gaps_is_refused_unless_the_reference_has_them() -> None:
    def column(step: int) -> OutputForm:
        return OutputForm("tensor", "float32", (4096, 64), (step, 1))

    dense = column(64)
    assert compare_forms([column(8 * 64)], [dense]).status == "ok"
    assert compare_forms([column(9 * 64)], [column(9 * 64)]).status == "ok"
    wide = compare_forms([column(9 * 64)], [dense])
    assert wide.status == "wrong_shape" and "for 1048576 bytes of values" in (wide.text or "")
    small = OutputForm("tensor", "float32", (8, 8), (4096, 1))
    assert compare_forms([small], [OutputForm("tensor", "float32", (8, 8), (8, 1))]).status == "ok"


def test_a_reference_whose_output_nobody_can_compare_is_no_reference() -> None:
    graph = small_graph((6, 8)).graph
    prepared = prepare_graph(graph, [make_inputs(graph, "fresh", seed) for seed in range(3)])
    said = Ran((OutputForm("other", "float8_e4m3fn tensor"),), (), 0.1, (0,), (0, 0))
    parent = FakeParent(map(framed, [Loaded(0.1), said, Fetched(), said, Fetched()]))
    candidate = Candidate("reference", "eager")
    with (
        LoadedWorker(parent, prepared, candidate, QUICK) as loaded,  # type: ignore[arg-type]
        pytest.raises(GraphError, match="float8_e4m3fn tensor, which cannot be compared"),
    ):
        Expected(prepared, loaded)


def test_many_slow_answers_end_a_worker_before_each_alone_would() -> None:
    parent = FakeParent([framed(Ran((), (), 0.1))] * 3)
    worker = parent.worker
    worker.allow(0.2)
    worker.receive(Ran, 5)
    worker.spend(0.15)
    worker.receive(Ran, 5)
    with pytest.raises(WorkerFailureError, match="all calls together took more than 0.2 s") as why:
        worker.spend(0.06)
    assert why.value.status == "timeout"


def test_a_worker_that_says_nothing_is_waited_for_no_longer_than_it_has_left() -> None:
    parent = FakeParent([])
    channel, theirs = channel_pair()
    parent.worker._channel.close()
    parent.worker._channel = channel
    parent.worker.allow(0.1)
    start = time.monotonic()
    with theirs, pytest.raises(WorkerFailureError, match=r"took more than 0.1 s"):
        parent.worker.receive(Ran, 60)
    assert time.monotonic() - start < 30


@pytest.mark.slow
def test_a_trial_of_slow_calls_ends_in_time(tmp_path: Path) -> None:
    body = (
        "import time\ndef replacement(x, y):\n    time.sleep(0.7)\n    return torch.relu(x + y)\n"
    )
    folder = str(write_passes(tmp_path / "slow", body))
    settings = replace(QUICK, trial_timeout_s=8.0)
    with ParentPool() as parents:
        candidates = [
            Candidate("slow", "passes", folder, "direct", root=folder),
            Candidate("eager", "eager", None, "direct"),
        ]
        slow, beside = judge_graph(parents, small_graph(), candidates, settings)
    assert slow.status == "timeout" and "all calls together took more than 8 s" in (
        slow.error or ""
    )
    assert beside.status == "ok"


def test_a_worker_that_ends_by_a_signal_without_a_name_is_a_crash() -> None:
    with WorkerParent() as parent, parent.fork(WorkerLimits(512)) as worker:
        os.kill(worker._pid, signal.SIGRTMIN + 5)
        with pytest.raises(WorkerFailureError, match=f"ended by signal {signal.SIGRTMIN + 5}"):
            worker.receive(Ran, 10)


@pytest.mark.slow
def test_a_candidate_under_which_the_judge_itself_fails_has_crashed_and_others_have_not(
    tmp_path: Path,
) -> None:
    # Without a sandbox a candidate can end the parent of its worker, and with it any answer.
    suite = load_suite(str(write_small_suite(tmp_path / "small.parquet", 1)))
    body = "import os\ndef replacement(x, y):\n    os.kill(os.getppid(), 9)\n    return x\n"
    words = {"killer": body, "good": GOOD}
    entries = [
        CandidateEntry(Candidate(name, "passes", None, "direct", root=str(folder)), folder)
        for name, text in words.items()
        for folder in [write_passes(tmp_path / name, text)]
    ]
    task = next(task for task in suite.tasks if task.name == "add_relu")
    settings = RunSettings(QUICK)
    with ParentPool() as parents:
        [(_, trials)] = judge_task(
            parents, task, entries, settings, (), (), InspectedFolders(QUICK.rules)
        )
    by_name = {trial.candidate: trial for trial in trials}
    assert by_name["killer"].status == "crash"
    assert (by_name["good"].status, by_name["good"].smallest_t) == ("ok", -10)


def test_an_uncaught_error_ends_a_run_and_does_not_hang_it(tmp_path: Path) -> None:
    suite = load_suite(str(write_small_suite(tmp_path / "small.parquet", 1)))
    assert len(suite.tasks) == 2  # the second waits for what the first gives back
    entry = CandidateEntry(Candidate("eager", "eager", None, "direct"))
    caught: list[BaseException] = []

    def broken(_: str) -> None:
        raise IndexError("of the caller")

    def run() -> None:
        try:
            run_suite(
                suite, [entry], RunSettings(QUICK), tmp_path / "run", RunPlan(progress=broken)
            )
        except IndexError as cause:
            caught.append(cause)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive() and len(caught) == 1
    assert (tmp_path / "run" / "trials.jsonl").read_text(encoding="utf-8").count("\n") >= 1
