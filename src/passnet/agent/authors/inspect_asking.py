"""The requests of an attempt to an LLM: each within the limits, to an endpoint that answers."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from inspect_ai import model as ai
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.tool import Tool
from inspect_ai.util import LimitExceededError

from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import tool_schemas
from passnet.agent.authors.inspect_llm import named, request_failure
from passnet.agent.settings import AgentLimits
from passnet.core.records.serialise import encode
from passnet.errors import AuthorError

CHARACTERS_PER_TOKEN = 3
"""Characters of a token in texts that the LLM has not counted yet; few, so as to be on the safe
side.
"""
SURE_ANSWER_TOKENS = 4096
"""Most tokens of an answer that endpoints are asked for unless the user names more."""


@dataclass(eq=False)
class Endpoint:
    """An LLM at one address, and how many requests failed there."""

    llm: ai.Model
    num_failures: int = 0


class Endpoints:
    """The endpoints of an LLM; attempts share them, and leave those that fail."""

    def __init__(self, llms: Sequence[ai.Model]) -> None:
        self._endpoints = [Endpoint(llm) for llm in llms]
        self._asked: list[list[Endpoint]] = []

    @contextmanager
    def use(self) -> Iterator[list[Endpoint]]:
        """Yield the endpoints as an attempt should ask them, the one with least trouble first."""
        if not self._endpoints:  # Inspect's own command names the LLM
            self._endpoints = [Endpoint(ai.get_model())]
        busy = [asked[0] for asked in self._asked]
        asked = sorted(self._endpoints, key=lambda each: (each.num_failures, busy.count(each)))
        self._asked.append(asked)
        try:
            yield asked
        finally:
            self._asked.remove(asked)


async def ask(
    endpoints: list[Endpoint],
    messages: list[ai.ChatMessage],
    tools: list[Tool],
    config: ai.GenerateConfig,
) -> ai.ModelOutput:
    """Return an LLM's answer; an endpoint that fails goes to the end of the list.

    Raises AuthorError if all endpoints fail.
    """
    failures = []
    for endpoint in [*endpoints]:
        try:
            return await endpoint.llm.generate(messages, tools, config=config)
        except LimitExceededError:
            raise
        except Exception as cause:  # boundary: whatever a provider raises
            endpoint.num_failures += 1
            endpoints.append(endpoints.pop(0))
            failures.append(f"{named(endpoint.llm)}: {request_failure(cause)}")
            if len(failures) == len(endpoints):
                raise AuthorError("; ".join(failures)) from cause
    raise AssertionError("an LLM has an endpoint")


def note_usage(session: Session) -> None:
    """Note the turns, tokens and cost of the attempt that is under way, as the endpoint counts."""
    usages = [answer.output.usage or ai.ModelUsage() for answer in _answers()]
    session.num_turns = len(usages)
    session.input_tokens = sum(usage.total_tokens - usage.output_tokens for usage in usages)
    session.output_tokens = sum(usage.output_tokens for usage in usages)
    costs = [usage.total_cost for usage in usages if usage.total_cost is not None]
    session.cost = sum(costs) if costs else None


def _answers() -> list[ModelEvent]:
    events = [event for event in transcript().events if isinstance(event, ModelEvent)]
    return [event for event in events if event.error is None and not event.pending]


def _usage(answer: ModelEvent, session: Session) -> ai.ModelUsage:
    """Return the tokens of an answer and its request, estimated if the endpoint does not say."""
    usage = answer.output.usage
    if usage is not None and usage.total_tokens:
        return usage
    input_tokens = _message_tokens(answer.input) + _schema_tokens(session)
    output_tokens = _message_tokens([answer.output.message])
    return ai.ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
    )


def _message_tokens(messages: Sequence[ai.ChatMessage]) -> int:
    """Estimate the tokens of messages that no endpoint has counted."""
    calls = [message.tool_calls or [] for message in messages if message.role == "assistant"]
    num_characters = sum(len(message.text) for message in messages)
    num_characters += sum(len(encode(call.arguments)) for of_one in calls for call in of_one)
    return math.ceil(num_characters / CHARACTERS_PER_TOKEN)


def _schema_tokens(session: Session) -> int:
    return math.ceil(len(encode(tool_schemas(session.known_tools))) / CHARACTERS_PER_TOKEN)


def answer_tokens(
    session: Session, messages: Sequence[ai.ChatMessage], limits: AgentLimits, llm: ai.Model
) -> int | None:
    """Return the most tokens of the next answer, None for the provider's default.

    Raises LimitExceededError if the request would go beyond a limit of turns, tokens or cost,
    whatever the answer is.
    """
    if session.num_turns >= limits.turns:
        raise LimitExceededError("turn", value=session.num_turns, limit=limits.turns)
    usages = [_usage(answer, session) for answer in _answers()]
    last = max((n for n, m in enumerate(messages) if m.role == "assistant"), default=-1)
    request_tokens = _message_tokens(messages[last + 1 :])
    request_tokens += usages[-1].total_tokens if usages else _schema_tokens(session)
    remainders: list[tuple[float, Any, float, float]] = []
    if limits.tokens is not None:
        used = sum(usage.total_tokens for usage in usages)
        remainders.append((limits.tokens - used - request_tokens, "token", used, limits.tokens))
    info = ai.get_model_info(llm) if limits.cost is not None else None
    if limits.cost is not None and info is not None and info.cost is not None:
        per_input, per_output = info.cost.input / 1e6, info.cost.output / 1e6
        cost = sum(
            usage.input_tokens * per_input + usage.output_tokens * per_output
            if usage.total_cost is None
            else usage.total_cost
            for usage in usages
        )
        remaining = limits.cost - cost - request_tokens * per_input
        tokens = remaining / per_output if per_output else math.inf
        remainders.append((tokens if remaining > 0 else 0.0, "cost", cost, limits.cost))
    most = llm.config.max_tokens
    if not remainders:
        return most
    num_left, kind, used, limit = min(remainders)
    if num_left < 1:
        raise LimitExceededError(kind, value=used, limit=limit)
    sure = SURE_ANSWER_TOKENS if most is None else most
    return int(num_left) if num_left < sure else most
