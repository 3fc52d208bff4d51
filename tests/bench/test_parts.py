"""A run in parts that are put together: nothing is judged twice, and what is no part is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.agent.attempts.attempt import Attempt
from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import Submit
from passnet.agent.run import run_agent
from passnet.agent.settings import AgentSettings
from passnet.bench.environment import describe_environment
from passnet.bench.run import JudgeOrder, Judges, Recorder, run_suite, tasks_of_part
from passnet.bench.run_record import run_folder
from passnet.core.jobs.run_plan import RunPlan, RunShard
from passnet.errors import AuthorError, InputError
from passnet.judge.desk.candidates import CandidateEntry, parse_candidate
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import Suite, load_suite
from passnet.judge.task import Task
from passnet.judge.trial import Trial

SETTINGS = RunSettings()
PARTS = (RunShard(1, 2), RunShard(2, 2))


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("demo")


def entries(suite: Suite, *names: str) -> list[CandidateEntry]:
    return [parse_candidate(name, suite.tasks) for name in names or ("eager", "null")]


class ToldJudges:
    """Judges that say `status` of everything, and keep what they were asked."""

    def __init__(self, status: Any = "ok") -> None:
        self.status = status
        self.asked: list[tuple[str, str]] = []

    @property
    def judges(self) -> Judges:
        return Judges(lambda _: describe_environment(), self._judge)

    def _judge(self, order: JudgeOrder, tasks: Sequence[Task], _: int, done: Recorder) -> None:
        for task in tasks:
            for graph in task.graphs:
                missing = [
                    entry.name
                    for entry in order.entries
                    if (graph.name, entry.name) not in order.finished
                ]
                self.asked += [(graph.name, name) for name in missing]
                done(
                    graph.name,
                    [Trial(task.name, graph.name, name, self.status) for name in missing],
                )


def test_parts_of_a_run_are_put_together(tmp_path: Path, suite: Suite) -> None:
    judges = ToldJudges()
    folders = []
    for shard in PARTS:
        out = tmp_path / str(shard.number)
        names = {graph.name for task in tasks_of_part(suite, shard) for graph in task.graphs}
        trials = run_suite(
            suite, entries(suite), SETTINGS, out, RunPlan(shard=shard), judges=judges.judges
        )
        assert {trial.graph for trial in trials} == names
        folders.append(out)
    wanted = {
        (graph.name, name)
        for task in suite.tasks
        for graph in task.graphs
        for name in ("eager", "null")
    }
    assert sorted(judges.asked) == sorted(wanted)
    judges.asked.clear()
    whole = run_suite(
        suite,
        entries(suite),
        SETTINGS,
        tmp_path / "all",
        RunPlan(parts=folders),
        judges=judges.judges,
    )
    assert {(trial.graph, trial.candidate) for trial in whole} == wanted
    assert set(run_folder(tmp_path / "all").records()) == wanted
    assert not judges.asked
    # with a candidate more, and a part less, only what is missing is judged
    run_suite(
        suite,
        entries(suite, "eager", "inductor"),
        SETTINGS,
        tmp_path / "more",
        RunPlan(parts=folders[:1]),
        judges=judges.judges,
    )
    first = {graph.name for task in tasks_of_part(suite, PARTS[0]) for graph in task.graphs}
    assert not {(name, "eager") for name in first} & set(judges.asked)
    assert {name for _, name in judges.asked} == {"eager", "inductor"}


def test_an_unstable_trial_gives_way_to_a_measured_one(tmp_path: Path, suite: Suite) -> None:
    judges, busy = ToldJudges(), ToldJudges("unstable")
    mine, other = tmp_path / "mine", tmp_path / "other"
    run_suite(suite, entries(suite), SETTINGS, mine, RunPlan(shard=PARTS[0]), judges=busy.judges)
    run_suite(suite, entries(suite), SETTINGS, other, RunPlan(shard=PARTS[0]), judges=judges.judges)
    judges.asked.clear()
    for out, part in ((mine, other), (other, mine)):
        trials = run_suite(
            suite,
            entries(suite),
            SETTINGS,
            out,
            RunPlan(resume=True, shard=PARTS[0], parts=[part]),
            judges=judges.judges,
        )
        assert {trial.status for trial in trials} == {"ok"} and not judges.asked


def test_what_is_no_part_of_a_run_is_refused(tmp_path: Path, suite: Suite) -> None:
    judges = ToldJudges().judges
    other = tmp_path / "other"
    settings = replace(SETTINGS, judge=JudgeSettings(seed=1))
    run_suite(suite, entries(suite, "eager"), settings, other, judges=judges)
    out = tmp_path / "out"
    with pytest.raises(InputError, match="other settings.* no part of this run"):
        run_suite(suite, entries(suite), SETTINGS, out, RunPlan(parts=[other]), judges=judges)
    with pytest.raises(InputError, match="none of the candidates of this run"):
        run_suite(
            suite, entries(suite, "null"), settings, out, RunPlan(parts=[other]), judges=judges
        )
    with pytest.raises(InputError, match=r"run\.json"):
        run_suite(suite, entries(suite), SETTINGS, out, RunPlan(parts=[tmp_path]), judges=judges)
    with pytest.raises(InputError, match="has no task of demo; take fewer parts"):
        run_suite(suite, entries(suite), SETTINGS, out, RunPlan(shard=_empty(suite)), judges=judges)
    assert not out.exists(), "nothing is begun"


def _empty(suite: Suite) -> RunShard:
    shards = [RunShard(number, 99) for number in range(1, 100)]
    return next(each for each in shards if not any(each.has(task.name) for task in suite.tasks))


def test_parts_of_a_run_of_an_author_are_put_together(tmp_path: Path, suite: Suite) -> None:
    asked: list[str] = []
    faults = [AuthorError("not now")]

    def author(session: Session, _: int) -> None:
        asked.append(session.task.name)
        if session.task.name == suite.tasks[0].name and faults:
            raise faults.pop()
        session.act(Submit())

    settings = AgentSettings(author="compiler", run=RunSettings())
    folders = [tmp_path / str(shard.number) for shard in PARTS]
    made: list[Attempt] = []
    for shard, out in zip(PARTS, folders, strict=True):
        run_agent(suite, settings, out, RunPlan(shard=shard, progress=made.append), program=author)
    names = [task.name for task in suite.tasks]
    assert sorted(asked) == sorted(names) == sorted(attempt.task for attempt in made)
    asked.clear()
    whole = run_agent(suite, settings, tmp_path / "all", RunPlan(parts=folders), program=author)
    assert asked == names[:1], "what ended in an error is made again"
    assert [attempt.task for attempt in whole] == sorted(names)
    asked.clear()
    run_agent(suite, settings, tmp_path / "all", RunPlan(resume=True), program=author)
    assert not asked
    other = replace(settings, seed=1)
    with pytest.raises(InputError, match="no part of this run"):
        run_agent(suite, other, tmp_path / "no", RunPlan(parts=folders), program=author)
    assert not (tmp_path / "no").exists()
