"""Conversations with servers: limits that hold at the wire, and several endpoints of one LLM."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from passnet.agent.attempts.session import Session
from passnet.agent.settings import AgentLimits, LlmSettings
from passnet.cli.agent import spending
from passnet.judge.task import Task
from tests.agent.endpoints import Reply, completion, endpoint, plain
from tests.judge.folders import small_graph

pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.solver import solver
from tenacity import wait_none

from passnet.agent.authors.inspect_asking import Endpoints
from passnet.agent.authors.inspect_llm import check_price, open_llms
from passnet.agent.authors.inspect_task import converse

pytestmark = pytest.mark.xdist_group("agent-run")

TASK = Task("add_relu", (small_graph(),))
NOBODY: Any = None
"""The judge of attempts that ask for no judgement."""


def attempts(
    folder: Path,
    *addresses: str,
    limits: AgentLimits = AgentLimits(),  # noqa: B008 (a constant)
    num_attempts: int = 1,
    watch: Any = lambda session: None,
    **settings: Any,
) -> list[Session]:
    """Let an LLM at some addresses converse, and return the sessions as they ended."""
    llm_settings = LlmSettings("openai/any", addresses, num_retries=0, **settings)
    llms = open_llms(llm_settings)
    for llm in llms:
        llm.api.retry_wait = wait_none  # type: ignore[method-assign]
    if settings.get("price"):
        check_price(llms[0], llm_settings)
    endpoints, sessions = Endpoints(llms), []

    async def solve(state: Any, generate: Any) -> Any:
        session = Session(TASK, NOBODY)
        sessions.append(session)
        with endpoints.use() as asked:
            await converse(state, session, asked, 0, limits, watch)
        return state

    task = inspect_ai.Task(
        dataset=MemoryDataset([Sample(input="Hello?") for _ in range(num_attempts)]),
        solver=solver(name="converse")(lambda: solve)(),
        token_limit=limits.tokens,
        cost_limit=limits.cost,
    )
    inspect_ai.eval(task, model=llms[0], log_dir=str(folder), display="none", max_samples=8,
                    max_connections=8, fail_on_error=False)  # fmt: skip
    return sessions


def allowed_tokens(request: dict[str, Any]) -> int | None:
    """The most tokens that a request allows an answer, under either name of that."""
    return request.get("max_tokens", request.get("max_completion_tokens"))


def talk(tokens: tuple[int, int] = (10, 5)) -> Any:
    """A server's answers to an LLM's turns, each with another number of calls."""
    made: list[int] = []

    def answer(request: dict[str, Any]) -> Reply:
        made.append(1)
        most = allowed_tokens(request)
        prompt, output = tokens[0] * len(made), tokens[1]
        given = output if most is None else min(output, most)
        return plain(completion(calls=len(made) % 3 + 1, tokens=(prompt, given)))

    return answer


def test_no_request_is_made_after_the_last_turn(tmp_path: Path) -> None:
    with endpoint(talk()) as (address, requests):
        [session] = attempts(tmp_path, address, limits=AgentLimits(turns=3))
    assert (session.ending, session.num_turns, len(requests)) == ("turns", 3, 3)


@pytest.mark.parametrize("most", [None, 40])
def test_tokens_stay_within_their_limit(most: int | None, tmp_path: Path) -> None:
    limits = AgentLimits(tokens=12_000)
    with endpoint(talk((1000, 500))) as (address, requests):
        [session] = attempts(tmp_path, address, limits=limits, max_output_tokens=most)
    assert session.ending == "tokens"
    assert 7_000 < session.input_tokens + session.output_tokens <= 12_000
    assert len(requests) == session.num_turns
    allowed = [allowed_tokens(request) for request in requests]
    assert allowed[0] == most and (most is not None or 0 < (allowed[-1] or 0) <= 4096)
    assert most is None or set(allowed) == {40}


def test_tokens_that_the_endpoint_does_not_count_are_estimated(tmp_path: Path) -> None:
    calls = iter(range(1, 1000))

    def answer(_: dict[str, Any]) -> Reply:
        return plain(completion("word " * 300, calls=next(calls) % 3 + 1, tokens=None))

    with endpoint(answer) as (address, requests):
        [session] = attempts(tmp_path, address, limits=AgentLimits(tokens=12_000))
    assert session.ending == "tokens" and 2 < len(requests) < 12
    assert (session.input_tokens, session.output_tokens) == (0, 0)


def test_a_limit_below_the_first_request_asks_nothing(tmp_path: Path) -> None:
    with endpoint(talk()) as (address, requests):
        [session] = attempts(tmp_path, address, limits=AgentLimits(tokens=100))
    assert (session.ending, session.num_turns, requests) == ("tokens", 0, [])


def test_cost_stays_within_its_limit_and_is_shown_with_turns_and_tokens(tmp_path: Path) -> None:
    shown: list[str] = []
    with endpoint(talk((1000, 500))) as (address, requests):
        [session] = attempts(
            tmp_path,
            address,
            limits=AgentLimits(cost=0.1),
            price=(10.0, 20.0),
            watch=spending(shown.append),
        )
    assert session.ending == "cost" and session.cost is not None
    assert 0.05 < session.cost <= 0.1 and len(requests) == session.num_turns == len(shown)
    assert shown[:2] == ["1 turns, 1,500 tokens, $0.02", "2 turns, 4,000 tokens, $0.05"]


def test_a_dead_endpoint_is_left_for_one_that_answers(tmp_path: Path) -> None:
    limits = AgentLimits(turns=2)
    with (
        endpoint(lambda _: Reply(b"<html>")) as (dead, asked_in_vain),
        endpoint(talk()) as (address, requests),
    ):
        sessions = attempts(tmp_path, dead, address, limits=limits, num_attempts=1)
        assert (len(asked_in_vain), len(requests)) == (1, 2)
        sessions += attempts(tmp_path, address, dead, limits=limits, num_attempts=3)
    assert [session.ending for session in sessions] == ["turns"] * 4


def test_if_all_endpoints_are_dead_all_are_named(tmp_path: Path) -> None:
    with (
        endpoint(lambda _: Reply(b"<html>")) as (first, _),
        endpoint(lambda _: Reply(b"no", 500)) as (second, _),
    ):
        [session] = attempts(tmp_path, first, second)
    assert session.ending == "error" and session.error is not None
    assert first in session.error and second in session.error


def test_a_silent_endpoint_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    """The other endpoint makes its attempts, and then that of the silent one."""
    with (
        endpoint(lambda _: Reply(None)) as (silent, asked_in_vain),
        endpoint(talk()) as (address, requests),
    ):
        limits = AgentLimits(turns=2)
        sessions = attempts(tmp_path, silent, address, limits=limits, num_attempts=2, timeout_s=2)
    assert [session.ending for session in sessions] == ["turns"] * 2
    assert len(asked_in_vain) == 1 and len(requests) == 4


def test_attempts_at_a_time_have_an_endpoint_each() -> None:
    llms = open_llms(LlmSettings("openai/any", ("http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1")))
    endpoints = Endpoints(llms)

    async def both() -> list[str]:
        with endpoints.use() as first, endpoints.use() as second:
            return [each[0].llm.api.base_url for each in (first, second)]

    assert len(set(asyncio.run(both()))) == 2
