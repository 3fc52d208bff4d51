"""An llm as author for ranges of a net: what it writes is judged and kept, and none of its failures
ends the run.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.agent.attempts.attempt import Attempt, read_attempts
from passnet.agent.settings import LlmSettings
from passnet.api import optimize_calls
from passnet.data.capture.capture import CapturedGraph, capture_values
from passnet.errors import AuthorError, InputError
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.optimizer.choose.pass_choice import PassChoice, choose_passes
from passnet.optimizer.package import load
from passnet.optimizer.record import OptimizedRecord
from passnet.optimizer.settings import OptimizeSettings
from passnet.pages.tables.optimizer_tables import optimized_tables
from passnet.passes.folder import LIST_FILE
from passnet.passes.library.store import PassLibrary

pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
from tests.agent.test_endpoint import endpoint
from tests.agent.test_run import call, script

pytestmark = pytest.mark.xdist_group("agent")

PASS = """
import torch

{guards}

def pattern(a, b):
    return torch.tanh(a) * b + 1.0

def replacement_args(a, b):
    return a, b

def replacement(a, b):
    return torch.addcmul(torch.ones_like(a), torch.tanh(a), b)

def replacement_func():
    return replacement
"""
GUARDS = "guards = ('a, b: float32, shape (64, 64), contiguous',)"


class Net(torch.nn.Module):
    """A range of ops, a graph break, and one more."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (torch.tanh(x @ x) * x + 1.0) @ x
        torch._dynamo.graph_break()
        return torch.sigmoid(y) * y


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for endpoints that ask for none."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture(scope="module")
def graphs() -> list[CapturedGraph]:
    with torch.no_grad():
        return capture_values(Net(), torch.randn(64, 64))


@pytest.fixture(scope="module")
def bench() -> Iterator[JudgeDesk]:
    judge = JudgeSettings(timing=TimingPlan(seconds=0.05, keeps_awake=False), self_tolerance=1e9)
    with JudgeDesk(RunSettings(judge, 1, find_sandbox("auto").name), "direct") as evaluator:
        yield evaluator


def written(tmp_path: Path, guards: str = GUARDS) -> str:
    """An llm that writes the pass, and evaluates it."""
    calls = [
        call("create", name=LIST_FILE, text=json.dumps(["Fuse"])),
        call("create", name="Fuse.py", text=PASS.format(guards=guards)),
        call("evaluate"),
    ]
    return script(tmp_path / "script.toml", calls, [call("submit")])


def ask(
    tmp_path: Path, graphs: list[CapturedGraph], bench: JudgeDesk, **options: Any
) -> tuple[PassChoice, list[Attempt]]:
    """What comes of asking an llm, and its attempts."""
    folder = tmp_path / "llm"
    choice = choose_passes(
        graphs, PassLibrary(tmp_path / "library"), [], evaluator=bench, trajectories=folder,
        **options,
    )  # fmt: skip
    return choice, read_attempts(sorted(folder.iterdir()))


@pytest.mark.slow
def test_what_an_llm_writes_is_judged_and_all_it_said_is_kept(
    tmp_path: Path, graphs: list[CapturedGraph], bench: JudgeDesk
) -> None:
    llm = LlmSettings(written(tmp_path))
    choice, attempts = ask(tmp_path, graphs[:1], bench, llm=llm)
    [result] = choice.results
    assert result.status in ("wins", "slower"), result.error
    assert result.author == llm.name and result.eager_ms
    [attempt] = attempts
    assert attempt.ending == "submitted" and attempt.evaluations[0].is_passing
    assert "A pass without guards is not used." in attempt.messages[1].content
    [entry] = PassLibrary(tmp_path / "library").entries()
    assert entry.author == llm.name
    again, attempts = ask(tmp_path, graphs[:1], bench, llm=llm)
    assert again.results == choice.results and len(attempts) == 1


@pytest.mark.slow
def test_a_pass_without_guards_is_not_used(
    tmp_path: Path, graphs: list[CapturedGraph], bench: JudgeDesk
) -> None:
    choice, _ = ask(tmp_path, graphs[:1], bench, llm=LlmSettings(written(tmp_path, guards="")))
    [result] = choice.results
    assert result.status == "nothing" and result.digest and not choice.chosen
    assert result.error and "Fuse has no guards" in result.error


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("page", "none of the API"),
        pytest.param("silence", "gave no answer in", marks=pytest.mark.slow),
        pytest.param(None, "Connection", marks=pytest.mark.slow),
    ],
)
def test_an_llm_that_does_not_answer_is_a_sentence_and_not_asked_again(
    answer: str | None, said: str, tmp_path: Path, graphs: list[CapturedGraph], bench: JudgeDesk
) -> None:
    with endpoint(answer or "page") as (address, requests):
        if answer is None:
            address = "http://127.0.0.1:1/v1"
        llm = LlmSettings("openai/any", (address,), num_retries=0)
        budget_s = 22.0 if answer == "silence" else 600.0
        choice, _ = ask(tmp_path, graphs, bench, llm=llm, budget_s=budget_s)
    [result] = choice.results
    assert result.status == "unfinished"
    assert result.error and said in result.error and "\n" not in result.error
    assert len(requests) == (answer is not None)
    assert not PassLibrary(tmp_path / "library").entries(), "it may be asked another time"


@pytest.mark.slow
def test_a_net_with_a_break_gets_what_an_llm_wrote_and_is_had_back(tmp_path: Path) -> None:
    def optimized(out: Path, **options: Any) -> OptimizedRecord:
        settings = OptimizeSettings(backends=("passes",), seconds=0.05, threads=1,
                                    library=str(tmp_path / "library"), **options)  # fmt: skip
        return optimize_calls(Net().eval(), [((torch.randn(64, 64),), {})], settings, out).record

    out = tmp_path / "out"
    [form] = optimized(out, llm=written(tmp_path)).forms
    assert len(list((out / "form-0" / "llm").glob("range_*/attempts.jsonl"))) == 2
    assert {each.author for each in form.ranges} == {f"scripted/{tmp_path}/script.toml"}
    passes = {engine.engine: engine for engine in form.engines}["passes"]
    assert passes.status == "ok" or passes.reason == "no pass saves anything"
    if passes.status == "ok":
        assert "behind Dynamo's guards" in passes.says
    x = torch.randn(64, 64)
    torch.testing.assert_close(load(out, Net().eval())(x), Net()(x))
    with endpoint("page") as (address, _):
        llm = LlmSettings("openai/any", (address,), num_retries=0)
        record = optimized(tmp_path / "dead", llm=llm)
    [result] = record.forms[0].ranges
    assert result.error and "none of the API" in result.error
    ranges, _ = optimized_tables(record)
    assert any("unfinished: " in row[-1] for row in ranges.rows)


def test_an_llm_that_cannot_be_asked_at_all_is_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AuthorError, match="OPENAI_API_KEY"):
        OptimizeSettings(llm="openai/any").tried()
    with pytest.raises((AuthorError, InputError), match="nobody/any"):
        OptimizeSettings(llm="nobody/any").tried()
