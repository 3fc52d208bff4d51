"""An attempt that has ended, as a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from passnet.agent.attempt import Attempt, Ending, Message
from passnet.agent.evaluator import Workbench
from passnet.agent.session import Session, task_score
from passnet.agent.settings import AgentSettings
from passnet.bench.environment import describe_environment
from passnet.errors import PassnetError
from passnet.judge.trial import Trial
from passnet.records.serialise import SCHEMA_VERSION
from passnet.suite.suite import Suite

MAX_MESSAGE_CHARACTERS = 400_000
"""What is longer in a message is cut in the record."""

PACKAGES = ("passnet", "torch", "inspect-ai", "openai")


@dataclass
class AttemptProgress:
    """What is noted of an attempt while it goes on, beside its session."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    ending: Ending | None = None
    error: str | None = None
    num_turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    messages: tuple[Message, ...] = ()


def finished(
    session: Session,
    progress: AttemptProgress,
    suite: Suite,
    settings: AgentSettings,
    number: int,
) -> Attempt:
    """The record of an attempt; what it submits is measured anew if the settings say so.

    Args:
        session: its pass folder and evaluations.
        progress: what was noted.
        suite: that the task is of.
        settings: what it was made with.
        number: of the attempt at its task, from 0.
    """
    trials: list[Trial] = []
    error = progress.error
    if settings.is_judged_anew and session.best is not None:
        try:
            trials = _judged_anew(session, settings)
        except PassnetError as cause:
            error = error or f"what was submitted could not be measured anew: {cause}"
    best = session.best
    return Attempt(
        schema_version=SCHEMA_VERSION,
        task=session.task.name,
        suite=suite.name,
        suite_hash=suite.content_hash,
        author=settings.author,
        llm=settings.llm.name if settings.llm else None,
        seed=settings.seed + number,
        number=number,
        messages=tuple(_cut(item) for item in progress.messages),
        evaluations=tuple(session.evaluations),
        best=best,
        score=session.evaluations[best].score if best is not None else None,
        final_score=task_score(trials) if trials else None,
        ending=progress.ending or ("submitted" if session.is_submitted else "stalled"),
        settings=settings.run,
        environment=describe_environment(),
        versions={name: _version(name) for name in PACKAGES},
        started=progress.started.isoformat(timespec="seconds"),
        seconds=round((datetime.now(UTC) - progress.started).total_seconds(), 3),
        num_turns=progress.num_turns,
        input_tokens=progress.input_tokens,
        output_tokens=progress.output_tokens,
        cost=progress.cost,
        num_bad_actions=session.num_bad_actions,
        tool_times=tuple(session.tool_times),
        judged=tuple(trials),
        error=error,
    )


def _judged_anew(session: Session, settings: AgentSettings) -> list[Trial]:
    assert session.best is not None, "only what is submitted is judged anew"
    with Workbench(settings.run, settings.call) as bench:
        files = session.evaluations[session.best].files
        return bench.judge(session.task, files, session.unseen)


def _cut(message: Message) -> Message:
    if len(message.content) <= MAX_MESSAGE_CHARACTERS:
        return message
    left = len(message.content) - MAX_MESSAGE_CHARACTERS
    text = f"{message.content[:MAX_MESSAGE_CHARACTERS]}… ({left} characters more)"
    return replace(message, content=text)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def with_messages(progress: AttemptProgress, messages: Sequence[Message]) -> None:
    """Note what was said so far."""
    progress.messages = tuple(messages)
    progress.num_turns = sum(item.role == "assistant" for item in messages)
