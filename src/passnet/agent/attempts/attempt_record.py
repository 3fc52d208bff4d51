"""The record of an attempt that has ended."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from passnet.agent.attempts.attempt import UNCHANGED_SCORE, Attempt, Message, is_correct
from passnet.agent.attempts.observations import task_score
from passnet.agent.attempts.session import Session
from passnet.agent.settings import AgentSettings
from passnet.bench.environment import describe_environment
from passnet.core.hardware import version_of
from passnet.core.records.serialise import MAX_LINE_BYTES, SCHEMA_VERSION, encode
from passnet.errors import PassnetError
from passnet.judge.desk.desk import JudgeDesk, StateJudge
from passnet.judge.protocol.device import kind_of
from passnet.judge.suite.suite import Suite
from passnet.judge.trial import Trial

MAX_MESSAGE_CHARACTERS = 400_000
"""Most characters of a text of a message in the record."""
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
    ending = session.ending or ("submitted" if session.is_submitted else "stalled")
    trials: list[Trial] = []
    if settings.is_judged_anew and best is not None:
        try:
            with ExitStack() as stack:
                evaluator = evaluator or stack.enter_context(JudgeDesk(settings.run, settings.call))
                files = session.evaluations[best].files
                trials = evaluator.judge(session.task, files, session.unseen)
        except PassnetError as cause:
            ending = "error"  # so that it is repeated, and counts in no score
            error = error or f"the submission could not be measured anew: {cause}"
    final_score = task_score(trials) if trials else None
    best = submitted(session, trials)
    attempt = Attempt(
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
        ending=ending,
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
    return fitted(attempt)


def fitted(attempt: Attempt, max_bytes: int = MAX_LINE_BYTES) -> Attempt:
    """Return an attempt whose record is no longer than a line may be.

    A longer one loses the files of states, the submitted ones excepted and those of exploits last,
    and then the ends of its longest messages.
    """
    num_over = len(encode(attempt)) + len("\n") - max_bytes
    if num_over <= 0:
        return attempt
    evaluations = list(attempt.evaluations)
    numbers = [number for number in range(len(evaluations)) if number != attempt.best]
    for number in sorted(numbers, key=lambda number: bool(evaluations[number].exploits)):
        if num_over > 0:
            num_over -= len(encode(evaluations[number].files))
            evaluations[number] = replace(evaluations[number], files={}, has_files=False)
    attempt = replace(attempt, evaluations=tuple(evaluations))
    longest = MAX_MESSAGE_CHARACTERS
    while len(encode(attempt)) >= max_bytes and longest > 1:
        longest //= 2
        messages = tuple(_shortened(message, longest) for message in attempt.messages)
        attempt = replace(attempt, messages=messages)
    return attempt


def submitted(session: Session, trials: Sequence[Trial]) -> int | None:
    """Return the number of the evaluation that an attempt submits after it was measured anew.

    The last measurement is the one without luck, so a guarded attempt submits no state that is
    wrong in it, or timed in it and no better than the unchanged graphs. `trials` are empty if it
    was not made.
    """
    best = session.best
    if best is None or not trials or not session.is_guarded:
        return best
    score = task_score(trials)
    is_right = all(map(is_correct, trials))
    return best if is_right and (score is None or score > UNCHANGED_SCORE) else None


def _shortened(message: Message, longest: int = MAX_MESSAGE_CHARACTERS) -> Message:
    return replace(
        message,
        content=_cut(message.content, longest),
        reasoning=message.reasoning and _cut(message.reasoning, longest),
        tool_calls=tuple(
            replace(call, arguments=_cut(call.arguments, longest)) for call in message.tool_calls
        ),
    )


def _cut(text: str, longest: int) -> str:
    num_over = len(text) - longest
    return f"{text[:longest]}… ({num_over} characters more)" if num_over > 0 else text
