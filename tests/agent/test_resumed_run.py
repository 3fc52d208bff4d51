"""A run that goes on: on the same machine, and with the passes that its records name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.agent.attempts.attempt import Attempt
from passnet.agent.attempts.session import Session
from passnet.agent.run import AgentRun, agent_folder, run_agent, write_passes
from passnet.agent.settings import AgentSettings, LlmSettings, input_digests
from passnet.bench.environment import describe_environment
from passnet.core.jobs.run_plan import RunPlan, RunShard
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import AuthorError, InputError
from passnet.judge.suite.suite import Suite, only_tasks
from passnet.passes.files import read_files
from tests.agent.attempts import SUITE, attempt, different, evaluation

RELU = only_tasks(SUITE, ("relu",))
SETTINGS = AgentSettings("compiler")


def made(number: int, **changes: Any) -> Attempt:
    """An attempt of a program at the task `relu`."""
    return different(number, author="compiler", llm=None, **changes)


def begun(
    out: Path,
    *attempts: Attempt,
    suite: Suite = RELU,
    is_guarded: bool = False,
    **changes: Any,
) -> AgentSettings:
    """Write the folder of a run that made these attempts, and return its settings."""
    settings = replace(SETTINGS, num_attempts=len(attempts), is_guarded=is_guarded)
    here = describe_environment()
    info = AgentRun(SCHEMA_VERSION, suite.name, suite.content_hash, settings, here)
    run = agent_folder(out)
    with run.begin(replace(info, **changes), False, lambda old, new: new), run.recorder(0) as put:
        for each in attempts:
            put(each)
    return settings


def nothing(session: Session, seed: int) -> None:
    """An author that writes nothing."""


def failing(session: Session, seed: int) -> None:
    """An author that fails."""
    raise AuthorError("no compiler")


def test_a_guarded_run_that_goes_on_takes_over_no_passes_that_were_not_timed(
    tmp_path: Path,
) -> None:
    untimed = made(0, evaluations=(evaluation(2, None),), score=None, final_score=None)
    settings = begun(tmp_path, untimed, is_guarded=True)
    assert run_agent(RELU, settings, tmp_path, RunPlan(resume=True), program=failing) == [untimed]
    assert not list(tmp_path.glob("passes/*"))


def test_passes_of_an_attempt_that_is_repeated_give_way_to_those_of_its_repetition(
    tmp_path: Path,
) -> None:
    failed = made(0, ending="error", error="the endpoint died")
    settings = begun(tmp_path, failed)
    write_passes(tmp_path / "passes", [failed])
    assert read_files(tmp_path / "passes/relu") == failed.files
    [again] = run_agent(RELU, settings, tmp_path, RunPlan(resume=True), program=nothing)
    assert again.best is None and not list(tmp_path.glob("passes/*"))


def test_passes_of_an_attempt_that_another_part_repeats_stay(tmp_path: Path) -> None:
    failed = made(0, ending="error", error="the endpoint died")
    settings = begun(tmp_path, failed, suite=SUITE)
    plan = RunPlan(resume=True, shard=RunShard(3, 4))
    assert plan.shard.has("tanh") and not plan.shard.has("relu")
    first, new = run_agent(SUITE, settings, tmp_path, plan, program=nothing)
    assert first == failed and new.task == "tanh"
    assert read_files(tmp_path / "passes/relu") == failed.files


@pytest.mark.parametrize("fact", [("cpu", "another"), ("torch", "2.0"), ("passnet", "0")])
def test_a_run_of_another_machine_does_not_go_on_here_and_is_no_part(
    fact: tuple[str, str], tmp_path: Path
) -> None:
    name, value = fact
    there = replace(describe_environment(), **{name: value})
    settings = begun(tmp_path / "run", attempt(), environment=there)
    plans = {"run": RunPlan(resume=True), "all": RunPlan(parts=(tmp_path / "run",))}
    for folder, plan in plans.items():
        with pytest.raises(InputError, match=f"run: was made with {name} {value}, and here it is"):
            run_agent(RELU, settings, tmp_path / folder, plan, program=nothing)
    other = replace(settings, seed=1)
    with pytest.raises(InputError, match="another suite or other settings"):
        run_agent(RELU, other, tmp_path / "run", RunPlan(resume=True), program=nothing)


def test_attempts_of_a_part_at_tasks_that_the_suite_lacks_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "letter.txt").write_text("of the user")
    own, foreign = made(0), replace(made(1), task=str(tmp_path / "elsewhere"))
    settings = begun(tmp_path / "part", own, foreign)
    plan = RunPlan(parts=(tmp_path / "part",))
    kept = run_agent(RELU, settings, tmp_path / "run", plan, program=nothing)
    assert [(attempt.task, attempt.number) for attempt in kept] == [("relu", 0), ("relu", 1)]
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["letter.txt"]


def test_a_run_goes_on_only_with_the_same_weights(tmp_path: Path) -> None:
    out, weights = tmp_path / "run", tmp_path / "llm" / "model" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"first")
    settings = AgentSettings("trained", checkpoint=str(tmp_path / "llm"))
    for _ in range(2):
        [attempt] = run_agent(RELU, settings, out, RunPlan(resume=True), program=failing)
        assert attempt.ending == "error"
    weights.write_bytes(b"second")
    with pytest.raises(InputError, match="files that they name differ"):
        run_agent(RELU, settings, out, RunPlan(resume=True), program=failing)


def test_scripts_and_kernels_are_inputs_too(tmp_path: Path) -> None:
    script, kernel = tmp_path / "script.toml", tmp_path / "kernels" / "relu" / "A.py"
    kernel.parent.mkdir(parents=True)
    for path in (script, kernel):
        path.write_text("first")
    settings = AgentSettings(
        "llm", LlmSettings(f"scripted/{script}"), kernels=str(tmp_path / "kernels")
    )
    seen = {input_digests(settings)}
    for path in (script, kernel):
        path.write_text("second")
        seen.add(input_digests(settings))
    assert len(seen) == 3
    assert input_digests(AgentSettings("compiler")) == ()
