"""The steps on a GPU: their limit, by a made-up clock, and what the next call goes on with."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from benchmarks.gpu import agreement, launches
from benchmarks.gpu.__main__ import main, run_steps, steps_table
from benchmarks.gpu.running import (
    GRACE_S,
    LIMIT_S,
    Step,
    StepState,
    read_state,
    run_step,
    start_process,
)
from benchmarks.gpu.steps import STEPS
from passnet.core.records.serialise import LineWriter
from passnet.judge.trial import Trial
from tests.processes import runs, wait_until


@dataclass
class Machine:
    """A machine with a clock of its own, on which commands take so long and end with a code."""

    seconds: dict[str, float]
    codes: dict[str, int] = field(default_factory=dict)
    now: float = 1000.0
    log: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def start(self, command: Sequence[str], out: Path) -> "Command":
        self.log.append(f"start {command[0]}")
        return Command(self, command[0], self.seconds[command[0]])


@dataclass
class Command:
    machine: Machine
    name: str
    left_s: float
    is_interrupted: bool = False

    def wait(self, timeout_s: float) -> int | None:
        passed_s = min(timeout_s, self.left_s)
        self.machine.now += passed_s
        self.left_s -= passed_s
        self.machine.seconds[self.name] -= passed_s  # it goes on where it was
        if self.left_s > 0:
            return None
        return 130 if self.is_interrupted else self.machine.codes.get(self.name, 0)

    def interrupt(self) -> None:
        self.machine.log.append(f"interrupt {self.name}")
        self.is_interrupted = self.left_s > 1.0
        self.left_s = min(self.left_s, 1.0)

    def end(self) -> None:
        self.machine.log.append(f"end {self.name}")


def step(*names: str, missing: str = "") -> Step:
    return Step("made", "a question", lambda _: [[name] for name in names],
                lambda folder: f"{len(list(folder.iterdir()))} files", lambda: missing)  # fmt: skip


def test_a_step_under_its_limit_is_complete(tmp_path: Path) -> None:
    machine = Machine({"a": 100.0, "b": 200.0})
    state = run_step(step("a", "b"), tmp_path, machine.start, machine.clock)
    assert state == StepState((0, 1), 1, 300.0, "complete") == read_state(tmp_path)
    assert machine.log == ["start a", "end a", "start b", "end b"]


def test_a_step_stops_at_its_limit_and_goes_on_at_the_next_call(tmp_path: Path) -> None:
    machine = Machine({"a": 100.0, "b": 800.0})
    state = run_step(step("a", "b"), tmp_path, machine.start, machine.clock)
    assert (state.finished, state.ending) == ((0,), "stopped")
    assert machine.log[2:] == ["start b", "interrupt b", "end b"]
    assert machine.now - 1000.0 == LIMIT_S - GRACE_S + 1.0, "with a second to put things away"
    machine.log.clear()
    begin = machine.now
    state = run_step(step("a", "b"), tmp_path, machine.start, machine.clock)
    assert machine.log == ["start b", "end b"], "the finished command does not run again"
    assert (state.ending, state.num_calls) == ("complete", 2)
    assert state.seconds == LIMIT_S - GRACE_S + 1.0 + machine.now - begin


def test_a_command_that_ends_well_as_it_is_stopped_is_finished(tmp_path: Path) -> None:
    machine = Machine({"a": LIMIT_S - GRACE_S + 0.5})
    state = run_step(step("a"), tmp_path, machine.start, machine.clock)
    assert machine.log == ["start a", "interrupt a", "end a"]
    assert state.is_complete


def test_nothing_begins_in_the_time_that_is_kept_for_ending(tmp_path: Path) -> None:
    machine = Machine({"a": LIMIT_S - GRACE_S, "b": 1.0})
    state = run_step(step("a", "b"), tmp_path, machine.start, machine.clock)
    assert (state.finished, state.ending) == ((0,), "stopped")
    assert machine.log == ["start a", "end a"]


def test_a_command_that_fails_is_named_and_run_again(tmp_path: Path) -> None:
    machine = Machine({"a": 1.0, "b": 1.0}, codes={"a": 3})
    state = run_step(step("a", "b"), tmp_path, machine.start, machine.clock)
    assert (state.finished, state.ending) == ((1,), "command 0 ended with 3")
    machine.codes.clear()
    machine.seconds["a"] = 1.0
    assert run_step(step("a", "b"), tmp_path, machine.start, machine.clock).is_complete


def test_without_a_gpu_a_step_says_so_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine({"a": 1.0})
    here, elsewhere = step("a"), replace(step("a", missing="no GPU"), name="gpu")
    assert not run_steps(["gpu"], tmp_path, [here, elsewhere], machine.start)
    assert capsys.readouterr().out == "gpu: nothing was run: no GPU\n"
    assert machine.log == []
    assert run_steps([], tmp_path, [here, elsewhere], machine.start)
    assert machine.log == ["start a", "end a"]
    assert run_steps([], tmp_path, [here], machine.start)
    assert "made: complete" in capsys.readouterr().out and len(machine.log) == 2


def test_the_table_has_every_step(tmp_path: Path) -> None:
    machine = Machine({"a": 1.0})
    made = step("a")
    assert steps_table(tmp_path, [made]).rows == [("made", "a question", "not run", "0", "0", "–")]
    run_step(made, tmp_path / "made", machine.start, machine.clock)
    assert steps_table(tmp_path, [made]).rows == [
        ("made", "a question", "complete", "1", "1", "1 files")
    ]


def test_steps_are_in_the_order_of_their_worth_and_sum_up_what_is_not_there_yet(
    tmp_path: Path,
) -> None:
    names = [each.name for each in STEPS]
    assert names == ["aa", "trial", "suite", "launches", "attacks", "rest", "compiled"]
    for each in STEPS:
        assert all(isinstance(word, str) for line in each.commands(tmp_path) for word in line)
        each.result(tmp_path)


def test_records_of_rounds_and_launches_are_summed_up(tmp_path: Path) -> None:
    paths = {name: tmp_path / name / "records.jsonl" for name in ("aa", "launches")}
    with LineWriter(paths["aa"]) as writer:
        for number, speedup in enumerate((1.01, 0.99)):
            trial = Trial("t", "g", "eager", "ok", -10, speedup, reference_ms=0.01)
            writer.write(agreement.AgreementRound("10 µs", number, trial, 2.0))
    with LineWriter(paths["launches"]) as writer:
        for planned in ("3", "4"):
            writer.write(launches.LaunchCount(f"g{planned}", planned, "3"))
    results = {each.name: each.result(tmp_path / each.name) for each in STEPS[:4]}
    assert results["aa"].startswith("10 µs: -0.00 % ± 1.41 %") or results["aa"].startswith(
        "10 µs: +0.00 % ± 1.41 %"
    )
    assert results["launches"] == "1 of 2 graphs as planned"


def test_a_process_ends_with_all_that_it_started(tmp_path: Path) -> None:
    running = start_process(["sh", "-c", "sleep 600 & echo $!; wait"], tmp_path / "0.out")
    wait_until(lambda: (tmp_path / "0.out").read_text().strip() != "", "nothing started")
    assert running.wait(0.0) is None
    pid = int((tmp_path / "0.out").read_text())
    assert runs(pid)
    running.end()
    wait_until(lambda: not runs(pid), "a process is left")
    ended = start_process([sys.executable, "-c", "print('done'); raise SystemExit(3)"],
                          tmp_path / "1.out")  # fmt: skip
    assert ended.wait(60.0) == 3
    assert (tmp_path / "1.out").read_text() == "done\n"


def test_an_unknown_step_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "there are aa, trial" in capsys.readouterr().err
