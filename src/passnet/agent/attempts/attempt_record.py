"""The record of an attempt that has ended."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from passnet.agent.attempts.attempt import UNCHANGED_SCORE, Attempt, Message
from passnet.agent.attempts.observations import task_score
from passnet.agent.attempts.session import Session
from passnet.agent.settings import AgentSettings
from passnet.bench.environment import describe_environment
from passnet.core.hardware import version_of
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import PassnetError
from passnet.judge.desk.desk import JudgeDesk, StateJudge
from passnet.judge.protocol.device import kind_of
from passnet.judge.suite.suite import Suite
from passnet.judge.trial import Trial

MAX_MESSAGE_CHARACTERS = 400_000
"""Most characters of a message in the record."""
VERSIONED = ("passnet", "torch", "inspect-ai", "openai")
"""Packages whose versions are in the record."""


def attempt_record(
    session: Session,
    suite: Suite,
    settings: AgentSettings,
    number: int,
    evaluator: StateJudge | None = None,
) -> Attempt:
    """Return the record of an attempt that has ended, the `number`th at its task, from 0.

    Its submission is measured anew if the settings say so, by `evaluator` or by a new one.
    """
    best, error = session.best, session.error
    trials: list[Trial] = []
    if settings.is_judged_anew and best is not None:
        try:
            with ExitStack() as stack:
                evaluator = evaluator or stack.enter_context(JudgeDesk(settings.run, settings.call))
                files = session.evaluations[best].files
                trials = evaluator.judge(session.task, files, session.unseen)
        except PassnetError as cause:
            error = error or f"the submission could not be measured anew: {cause}"
    final_score = task_score(trials) if trials else None
    best = submitted(session, final_score)
    return Attempt(
        schema_version=SCHEMA_VERSION,
        task=session.task.name,
        suite=suite.name,
        suite_hash=suite.content_hash,
        author=settings.author,
        llm=settings.llm.name if settings.llm else None,
        seed=settings.seed + number,
        number=number,
        messages=tuple(map(_shortened, session.messages)),
        evaluations=tuple(session.evaluations),
        best=best,
        score=session.evaluations[best].score if best is not None else None,
        final_score=final_score if best is not None else None,
        ending=session.ending or ("submitted" if session.is_submitted else "stalled"),
        settings=settings.run,
        environment=describe_environment(kind_of(settings.run.judge.device) == "cuda"),
        versions={name: version_of(name, "not installed") for name in VERSIONED},
        started=session.started.isoformat(timespec="seconds"),
        seconds=round((datetime.now(UTC) - session.started).total_seconds(), 3),
        num_turns=session.num_turns,
        input_tokens=session.input_tokens,
        output_tokens=session.output_tokens,
        cost=session.cost,
        num_bad_actions=session.num_bad_actions,
        tool_times=tuple(session.tool_times),
        judged=tuple(trials),
        error=error,
    )


def submitted(session: Session, final_score: float | None) -> int | None:
    """Return the number of the evaluation that an attempt submits after it was measured anew.

    A guarded attempt does not submit a best state that was timed only now, and lost.
    """
    best = session.best
    if best is None or final_score is None or not session.is_guarded:
        return best
    was_timed = session.evaluations[best].score is not None
    return best if was_timed or final_score > UNCHANGED_SCORE else None


def _shortened(message: Message) -> Message:
    num_over = len(message.content) - MAX_MESSAGE_CHARACTERS
    if num_over <= 0:
        return message
    text = message.content[:MAX_MESSAGE_CHARACTERS]
    return replace(message, content=f"{text}… ({num_over} characters more)")
