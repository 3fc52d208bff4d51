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


@dataclass
class Endpoint:
    """An LLM at one address, with its attempts under way and its failed requests."""

    llm: ai.Model
    num_attempts: int = 0
    num_failures: int = 0


class Endpoints:
    """The endpoints of an LLM; attempts share them, and leave those that fail."""

    def __init__(self, llms: Sequence[ai.Model]) -> None:
        self._endpoints = [Endpoint(llm) for llm in llms]

    @contextmanager
    def use(self) -> Iterator[list[Endpoint]]:
        """Yield the endpoints as an attempt should ask them, the one with least trouble first."""
        if not self._endpoints:  # Inspect's own command names the LLM
            self._endpoints = [Endpoint(ai.get_model())]
        ordered = sorted(self._endpoints, key=lambda each: (each.num_failures, each.num_attempts))
        ordered[0].num_attempts += 1
        try:
            yield [*ordered]
        finally:
            ordered[0].num_attempts -= 1


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
    """Note the turns, tokens and cost of the attempt that is under way."""
    usages = _usages()
    session.num_turns = len(usages)
    session.input_tokens = sum(usage.total_tokens - usage.output_tokens for usage in usages)
    session.output_tokens = sum(usage.output_tokens for usage in usages)
    costs = [usage.total_cost for usage in usages if usage.total_cost is not None]
    session.cost = sum(costs) if costs else None


def _usages() -> list[ai.ModelUsage]:
    events = [event for event in transcript().events if isinstance(event, ModelEvent)]
    answers = [event.output for event in events if event.error is None and not event.pending]
    return [answer.usage or ai.ModelUsage() for answer in answers]


def answer_tokens(
    session: Session, messages: Sequence[ai.ChatMessage], limits: AgentLimits, llm: ai.Model
) -> int | None:
    """Return the most tokens of the next answer, None for the provider's default.

    Raises LimitExceededError if the request would go beyond a limit of turns, tokens or cost,
    whatever the answer is.
    """
    if session.num_turns >= limits.turns:
        raise LimitExceededError("turn", value=session.num_turns, limit=limits.turns)
    asked = _request_tokens(session, messages)
    left: list[tuple[float, Any, float, float]] = []
    if limits.tokens is not None:
        used = session.input_tokens + session.output_tokens
        left.append((limits.tokens - used - asked, "token", used, limits.tokens))
    info = ai.get_model_info(llm) if limits.cost is not None else None
    if limits.cost is not None and info is not None and info.cost is not None:
        cost = session.cost or 0.0
        remaining = limits.cost - cost - asked * info.cost.input / 1e6
        tokens = remaining / info.cost.output * 1e6 if info.cost.output else math.inf
        left.append((tokens if remaining > 0 else 0.0, "cost", cost, limits.cost))
    most = llm.config.max_tokens
    if not left:
        return most
    num_left, kind, used, limit = min(left)
    if num_left < 1:
        raise LimitExceededError(kind, value=used, limit=limit)
    sure = SURE_ANSWER_TOKENS if most is None else most
    return int(num_left) if num_left < sure else most


def _request_tokens(session: Session, messages: Sequence[ai.ChatMessage]) -> int:
    """Estimate the tokens of a request: counted up to the last answer, guessed from there."""
    usages = _usages()
    last = max((n for n, m in enumerate(messages) if m.role == "assistant"), default=-1)
    num_characters = sum(len(message.text) for message in messages[last + 1 :])
    if usages and usages[-1].total_tokens:
        return usages[-1].total_tokens + math.ceil(num_characters / CHARACTERS_PER_TOKEN)
    schemas = encode(tool_schemas(session.known_tools))
    return math.ceil((num_characters + len(schemas)) / CHARACTERS_PER_TOKEN)
