"""Attempts fit to learn from, and the reasons against the others."""

import ast
import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from passnet.agent.attempts.attempt import Attempt, Message
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.data.dataset.splits import SuiteKeys, num_near
from passnet.errors import InputError
from passnet.judge.suite.suite import Suite, make_suite, task_leaks
from passnet.judge.task import Task
from passnet.passes.files import Files

TrainingForm: TypeAlias = Literal["chat", "pairs"]
"""Whole chats with their tool calls, or tasks with their final passes."""
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
"""The reason to leave an attempt out; the first that holds, in this order."""
TaskKey: TypeAlias = tuple[str, str]
"""The content hash of the suite of a task, and its name."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on an attempt to learn from.

    An attempt with an exploit at any turn, one at a task of evaluation (by suite, or named in
    `eval_tasks`), and a copy of a better one are always left out. `min_score` is the least AS
    measured anew at the end; `only_submitted` leaves out attempts that ran out of turns, tokens or
    time.
    """

    min_score: float = 1.0
    only_submitted: bool = True
    eval_tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainingExample:
    """An attempt to learn from, and its task."""

    attempt: Attempt
    task: Task


@dataclass(frozen=True)
class TrainingInfo:
    """The origin of training data: attempts `dropped` by reason, and content hashes of
    `evaluation`.

    `near_sequences` counts evaluation's op sequences that are part of a selected one: no leak.
    """

    schema_version: int
    form: TrainingForm
    until_best: bool
    filters: Filters
    evaluation: dict[str, str]
    near_sequences: int
    num_read: int
    dropped: dict[ExclusionReason, int]
    num_rows: int
    num_tasks: int


@dataclass(frozen=True)
class Selection:
    """Attempts to learn from, and their record."""

    examples: tuple[TrainingExample, ...]
    info: TrainingInfo


def select(
    attempts: Sequence[Attempt],
    suites: Sequence[Suite],
    evaluation: SuiteKeys,
    filters: Filters,
    form: TrainingForm,
) -> Selection:
    """Return the attempts to learn from, in an order that does not depend on that of the input.

    A task is of evaluation if its op sequence, or the structure of one of its graphs, is in a suite
    of evaluation, or its name in `filters`. Raises InputError for an attempt at another suite than
    those given, or if no attempt remains.
    """
    tasks = find_tasks(attempts, suites)
    kept_apart = _evaluation_tasks(tasks, evaluation, filters.eval_tasks)
    dropped: Counter[ExclusionReason] = Counter()
    examples = []
    for attempt in attempts:
        key = (attempt.suite_hash, attempt.task)
        reason = _unfit(attempt, filters, key in kept_apart, form)
        if reason is None:
            examples.append(TrainingExample(attempt, tasks[key]))
        else:
            dropped[reason] += 1
    examples.sort(key=lambda example: _worth(example.attempt))
    codes = [(example.task.ops, code_digest(example.attempt.files)) for example in examples]
    examples = _each_once(examples, codes, "same code", dropped)
    if form == "chat":
        chats = [chat_digest(example.attempt.messages) for example in examples]
        examples = _each_once(examples, chats, "same messages", dropped)
    if not examples:
        counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
        raise InputError(f"none of {len(attempts)} attempts is left to learn from: {counts}")
    sequences = {example.task.ops for example in examples}
    info = TrainingInfo(
        schema_version=SCHEMA_VERSION,
        form=form,
        until_best=False,
        filters=filters,
        evaluation=dict(evaluation.hashes),
        near_sequences=num_near(sequences, list(evaluation.sequences)),
        num_read=len(attempts),
        dropped=dict(dropped),
        num_rows=len(examples),
        num_tasks=len(sequences),
    )
    examples.sort(key=lambda example: _order(example.attempt))
    return Selection(tuple(examples), info)


def find_tasks(attempts: Iterable[Attempt], suites: Sequence[Suite]) -> dict[TaskKey, Task]:
    """Return the task of every attempt, by the content hash of its suite or of a part of it.

    Raises InputError for an attempt at none of the suites.
    """
    by_suite: dict[str, dict[str, Attempt]] = {}
    for attempt in attempts:
        by_suite.setdefault(attempt.suite_hash, {}).setdefault(attempt.task, attempt)
    tasks: dict[TaskKey, Task] = {}
    for content_hash, first_attempts in by_suite.items():
        by_name = {task.name: task for task in _tasks(content_hash, first_attempts, suites)}
        for name, attempt in first_attempts.items():
            if name not in by_name:
                names = ", ".join(f"{suite.name} {suite.content_hash[:12]}" for suite in suites)
                raise InputError(
                    f"task {name}: was tried on suite {attempt.suite} {content_hash[:12]}, which "
                    f"is not among those given ({names or 'none'}), so it cannot be told whether "
                    "it is one of evaluation; give that suite too"
                )
            tasks[content_hash, name] = by_name[name]
    return tasks


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


def _evaluation_tasks(
    tasks: Mapping[TaskKey, Task], evaluation: SuiteKeys, names: Collection[str]
) -> set[TaskKey]:
    keys = list(tasks)
    numbered = {str(number): tasks[key] for number, key in enumerate(keys)}
    leaked = {keys[int(leak.row)] for leak in task_leaks(numbered, evaluation)}
    return leaked | {key for key in keys if key[1] in names}


def _unfit(
    attempt: Attempt, filters: Filters, is_evaluation: bool, form: TrainingForm
) -> ExclusionReason | None:
    if attempt.best is None:
        return "nothing submitted"
    if filters.only_submitted and attempt.ending != "submitted":
        return "ended before it submitted"
    if attempt.final_score is None:
        return "not measured anew"
    if attempt.final_score < filters.min_score:
        return "score too low"
    if attempt.exploits:
        return "exploit"
    if is_evaluation:
        return "task of evaluation"
    if form == "chat" and not any(message.role == "assistant" for message in attempt.messages):
        return "no chat"
    calls = [call for message in attempt.messages for call in message.tool_calls]
    has_broken = form == "chat" and any(call_arguments(call.arguments) is None for call in calls)
    return "call without JSON" if has_broken else None


def _each_once(
    examples: Sequence[TrainingExample],
    keys: Sequence[object],
    reason: ExclusionReason,
    dropped: Counter[ExclusionReason],
) -> list[TrainingExample]:
    first = dict(zip(reversed(keys), reversed(examples), strict=True))
    if len(first) < len(examples):
        dropped[reason] += len(examples) - len(first)
    return [first[key] for key in dict.fromkeys(keys)]


def _worth(attempt: Attempt) -> tuple[float, int, tuple[str | int, ...]]:
    """Return a sort key that puts the best first: the highest score, then the fewest turns."""
    assert attempt.final_score is not None, "what has no score was left out"
    return -attempt.final_score, attempt.num_turns, _order(attempt)


def _order(attempt: Attempt) -> tuple[str | int, ...]:
    own = (attempt.llm or "", attempt.seed, attempt.number, attempt.started, attempt.suite_hash)
    return (attempt.suite, attempt.task, attempt.author, *own)


def code_digest(files: Files) -> str:
    """Return the SHA-256 of a pass folder in its normal form."""
    return _digest([(name, normal_text(name, text)) for name, text in sorted(files.items())])


def chat_digest(messages: Iterable[Message]) -> str:
    """Return the SHA-256 of a chat, without the ids of its calls, which differ each time."""
    rows = []
    for message in messages:
        calls = [(call.name, call_arguments(call.arguments)) for call in message.tool_calls]
        rows.append((message.role, message.content, calls, message.reasoning))
    return _digest(rows)


def normal_text(name: str, text: str) -> str:
    """Return the text of a file without its layout.

    Left out are layout, comments and docstrings of Python, layout and order of JSON, and in other
    files empty lines and spaces at the ends of lines.

    Examples:
        >>> normal_text("a.py", "x = (1 +\\n  2)  # three") == normal_text("a.py", "x = 1 + 2")
        True
    """
    try:
        if name.endswith(".py"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about odd escapes in strings
                return ast.unparse(_without_docstrings(ast.parse(text)))
        if name.endswith(".json"):
            return json.dumps(json.loads(text), sort_keys=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass  # of another format than its name says: any text
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def call_arguments(text: str) -> dict[str, Any] | None:
    """Return the arguments of a tool call; None if the text is no JSON object.

    Examples:
        >>> call_arguments('{"name": "a.py"}'), call_arguments(""), call_arguments('{"name": ')
        ({'name': 'a.py'}, {}, None)
    """
    try:
        arguments = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()
