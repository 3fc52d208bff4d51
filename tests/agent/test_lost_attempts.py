"""Attempts of an LLM that fail before its first request, and calls without JSON."""

from pathlib import Path

import pytest

from passnet.agent.attempts.attempt import ATTEMPTS_FILE
from passnet.agent.run import run_agent
from passnet.agent.settings import AgentSettings, LlmSettings
from passnet.agent.trajectories.selection import Filters, select
from passnet.core.jobs.run_plan import RunPlan
from passnet.data.dataset.splits import SuiteKeys
from passnet.errors import AuthorError, InputError
from passnet.judge.settings import RunSettings
from tests.agent.attempts import CHAT, SUITE, attempt

pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
from inspect_ai.model import ChatMessageAssistant
from inspect_ai.tool import ToolCall

from passnet.agent.authors.inspect_task import recorded_message

pytestmark = pytest.mark.xdist_group("agent-run")

LLM = LlmSettings("scripted")


def test_an_attempt_that_cannot_be_prepared_is_a_record_and_the_next_begins(
    tmp_path: Path,
) -> None:
    settings = AgentSettings("llm", LLM, run=RunSettings(sandbox="no such"))
    seen: list[str] = []
    plan = RunPlan(progress=lambda made: seen.append(made.task))
    made = run_agent(SUITE, settings, tmp_path, plan)
    assert [each.task for each in made] == ["relu", "tanh"] and sorted(seen) == ["relu", "tanh"]
    assert {each.ending for each in made} == {"error"}
    assert all("no sandbox 'no such'" in str(each.error) for each in made)
    assert (tmp_path / ATTEMPTS_FILE).read_bytes().count(b"\n") == 2


def test_an_attempt_that_leaves_no_record_is_an_error(tmp_path: Path) -> None:
    settings = AgentSettings("llm", LLM, kernels=str(tmp_path / "missing"))
    with pytest.raises(AuthorError, match="2 attempts left no record, the first relu#0: FileNot"):
        run_agent(SUITE, settings, tmp_path / "out")


def test_a_call_without_json_is_recorded_as_it_was_and_not_learned_from() -> None:
    written = '{"name": "Fuse.py", "text": "import torch'  # cut off by the limit of tokens
    call = ToolCall("c1", "create", {}, parse_error=f"no arguments: {written}")
    message = recorded_message(ChatMessageAssistant(content="", tool_calls=[call]))
    assert written in message.tool_calls[0].arguments
    broken = attempt(messages=(*CHAT[:2], message, *CHAT[2:]))
    with pytest.raises(InputError, match="1 call without JSON"):
        select([broken], [SUITE], SuiteKeys({}, {}, {}), Filters(), "chat")
