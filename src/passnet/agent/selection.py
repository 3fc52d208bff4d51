"""Which attempts are fit to learn from, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.agent.attempt import Attempt
from passnet.agent.dedup import call_arguments, chat_digest, code_digest
from passnet.agent.trajectories import exploits
from passnet.dataset.splits import Part, SuiteKeys, leaks, num_near
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.suite.suite import Suite, Task, make_suite

TrainingForm: TypeAlias = Literal["chat", "pairs"]
"""What is learned from: whole chats with their tool calls, or tasks with their final passes."""

ExclusionReason: TypeAlias = Literal[
    "nothing submitted",
    "ended before it submitted",
    "not measured anew",
    "score too low",
    "exploit",
    "task of evaluation",
    "no chat",
    "call without JSON",
    "same code",
    "same messages",
]
"""Why an attempt is left out; the first that holds, in this order."""

TaskKey: TypeAlias = tuple[str, str]
"""The content hash of the suite of a task, and its name."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What an attempt must be to be kept.

    An attempt with an exploit at any turn, one at a task of evaluation, and a copy of a better one
    are always left out.

    Args:
        min_score: the least AS of what was submitted, measured anew at the end.
        only_submitted: only attempts that ended because their author submitted; otherwise also
            those whose best state was taken when turns, tokens or time were used up.
        eval_tasks: names of tasks that are evaluation, besides those of suites.
    """

    min_score: float = 1.0
    only_submitted: bool = True
    eval_tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """An attempt to learn from, and the task that it was at."""

    attempt: Attempt
    task: Task


@dataclass(frozen=True)
class Selection:
    """Attempts to learn from, and how many were left out for which reason.

    `evaluation` has the content hash of every suite of evaluation by its name. `near_sequences`
    counts its op sequences that are a contiguous part of one that is kept; this is no leak.
    """

    form: TrainingForm
    filters: Filters
    chosen: tuple[Chosen, ...]
    num_read: int
    dropped: dict[ExclusionReason, int]
    evaluation: dict[str, str]
    near_sequences: int


def select(
    attempts: Sequence[Attempt],
    suites: Sequence[Suite],
    evaluation: SuiteKeys,
    filters: Filters,
    form: TrainingForm,
) -> Selection:
    """The attempts to learn from, in an order that does not depend on that of the input.

    A task is of evaluation if its op sequence, or the structure of one of its graphs, is in a suite
    of evaluation, whatever its name is, or if its name is in `filters`.

    Args:
        attempts: to choose from.
        suites: that the attempts were made on.
        evaluation: what must not be learned from; see `dataset.splits.read_suites`.
        filters: what to keep.
        form: what is learned from.

    Raises:
        InputError: the suite of an attempt is not among those given, so that nobody can tell
            whether its task is one of evaluation; or no attempt is left.
    """
    tasks = find_tasks(attempts, suites)
    kept_apart = _of_evaluation(tasks, evaluation, filters.eval_tasks)
    dropped: Counter[ExclusionReason] = Counter()
    fit = []
    for attempt in attempts:
        reason = _unfit(attempt, filters)
        if reason is None and _key(attempt) in kept_apart:
            reason = "task of evaluation"
        if reason is None and form == "chat":
            reason = _no_chat(attempt)
        if reason is None:
            fit.append(Chosen(attempt, tasks[_key(attempt)]))
        else:
            dropped[reason] += 1
    different = _each_once(fit, _same_code, "same code", dropped)
    if form == "chat":
        different = _each_once(different, _same_messages, "same messages", dropped)
    if not different:
        counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        raise InputError(f"none of {len(attempts)} attempts is left to learn from: {counts}")
    different.sort(key=lambda item: _order(item.attempt))
    sequences = {item.task.ops for item in different}
    return Selection(
        form,
        filters,
        tuple(different),
        len(attempts),
        dict(dropped),
        dict(evaluation.hashes),
        num_near(sequences, list(evaluation.sequences)),
    )


def find_tasks(attempts: Iterable[Attempt], suites: Sequence[Suite]) -> dict[TaskKey, Task]:
    """The task of every attempt, by the content of the suite that it was made on.

    A suite is also recognised by some of its tasks alone, those that there are attempts at.

    Raises:
        InputError: it is in none of the suites.
    """
    wanted: dict[str, dict[str, Attempt]] = {}
    for attempt in attempts:
        wanted.setdefault(attempt.suite_hash, {}).setdefault(attempt.task, attempt)
    found: dict[TaskKey, Task] = {}
    for content_hash, firsts in wanted.items():
        known = {task.name: task for task in _tasks(content_hash, firsts, suites)}
        for name, attempt in firsts.items():
            if name not in known:
                given = ", ".join(f"{suite.name} {suite.content_hash[:12]}" for suite in suites)
                raise InputError(
                    f"task {name}: was tried on suite {attempt.suite} {content_hash[:12]}, which "
                    f"is not among those given ({given or 'none'}), so it cannot be told whether "
                    "it is one of evaluation; give that suite too"
                )
            found[content_hash, name] = known[name]
    return found


def _tasks(content_hash: str, names: Collection[str], suites: Sequence[Suite]) -> Sequence[Task]:
    for suite in suites:
        if suite.content_hash == content_hash:
            return suite.tasks
    for suite in suites:
        part = [task for task in suite.tasks if task.name in names]
        graphs = [graph for task in part for graph in task.graphs]
        if graphs and make_suite(suite.name, graphs).content_hash == content_hash:
            return part
    return ()


def _key(attempt: Attempt) -> TaskKey:
    return attempt.suite_hash, attempt.task


def _of_evaluation(
    tasks: Mapping[TaskKey, Task], evaluation: SuiteKeys, names: Collection[str]
) -> set[TaskKey]:
    numbered = dict(enumerate(tasks.items()))
    parts = [
        Part(str(number), fingerprints(item.graph).structure, task.ops)
        for number, (_, task) in numbered.items()
        for item in task.graphs
    ]
    found = leaks(parts, {part.full: "train" for part in parts}, evaluation)
    same = {numbered[int(leak.row)][0] for leak in found}
    return same | {key for key in tasks if key[1] in names}


def _unfit(attempt: Attempt, filters: Filters) -> ExclusionReason | None:
    if attempt.best is None:
        return "nothing submitted"
    if filters.only_submitted and attempt.ending != "submitted":
        return "ended before it submitted"
    if attempt.final_score is None:
        return "not measured anew"
    if attempt.final_score < filters.min_score:
        return "score too low"
    return "exploit" if exploits(attempt) else None


def _no_chat(attempt: Attempt) -> ExclusionReason | None:
    if not any(message.role == "assistant" for message in attempt.messages):
        return "no chat"
    calls = [call for message in attempt.messages for call in message.tool_calls]
    if any(call_arguments(call.arguments) is None for call in calls):
        return "call without JSON"
    return None


def _each_once(
    items: Iterable[Chosen],
    key: Callable[[Chosen], tuple[object, ...]],
    reason: ExclusionReason,
    dropped: Counter[ExclusionReason],
) -> list[Chosen]:
    """The best of those that are the same: the highest score, then the fewest turns."""
    best: dict[tuple[object, ...], Chosen] = {}
    for item in sorted(items, key=lambda item: _worth(item.attempt)):
        if best.setdefault(key(item), item) is not item:
            dropped[reason] += 1
    return list(best.values())


def _same_code(item: Chosen) -> tuple[object, ...]:
    return item.task.ops, code_digest(item.attempt.files)


def _same_messages(item: Chosen) -> tuple[object, ...]:
    return (chat_digest(item.attempt.messages),)


def _worth(attempt: Attempt) -> tuple[float, int, tuple[str | int, ...]]:
    assert attempt.final_score is not None, "what has no score was left out"
    return -attempt.final_score, attempt.num_turns, _order(attempt)


def _order(attempt: Attempt) -> tuple[str | int, ...]:
    return (
        attempt.suite,
        attempt.task,
        attempt.author,
        attempt.llm or "",
        attempt.seed,
        attempt.number,
        attempt.started,
        attempt.suite_hash,
    )
