"""The pages of attempts: turns, tool calls, scores, and how the files of a folder changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from passnet.agent.attempts.attempt import Attempt, Evaluation, Message, ToolCall, VariantResult
from passnet.agent.trajectories.stats import best_so_far, summarise
from passnet.bench.environment import hardware_text
from passnet.core.records.serialise import write_text
from passnet.pages.site.text import shortened
from passnet.pages.tables.attempt_tables import stats_tables
from passnet_site.pages.safe_text import file_stem, folder_diff, script
from passnet_site.pages.site_folder import SiteFolder
from passnet_site.pages.table_spec import ColumnSpec, line_chart, of_text_table, table_spec

TABLE_HEIGHT = 620
LONG_CHARACTERS = 900
"""A longer message is folded."""

MAX_CHARACTERS = 12_000
"""The remainder of a longer message is in a script that is loaded on demand."""


def write_attempts(site: SiteFolder, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Write the page of every attempt and the list of all, and yield the task of each."""
    rows = []
    for number, attempt in enumerate(attempts):
        stem = f"{number:04}-{file_stem(attempt.task)}"
        _write_attempt(site, attempt, stem)
        rows.append(_index_row(attempt, stem))
        yield attempt.task
    stats = summarise(attempts)
    tables = stats_tables(stats)
    data = {f"stats-{n}": of_text_table(table) for n, table in enumerate(tables)}
    data["attempts"] = table_spec(_INDEX, rows, height=TABLE_HEIGHT)
    curves = {
        author.name: [(n, score) for n, score in enumerate(author.curve, 1) if score is not None]
        for author in stats
        if author.curve
    }
    if curves:
        x, y = {"label": "evaluations", "integer": True}, {"label": "best AS", "log": True}
        data["curves"] = line_chart(curves, x, y, rule=1, markers=True)
    site.write_page("attempts/index.html", "attempts", data, tables=tables)


_INDEX = (
    ColumnSpec("task", "link", "words"),
    ColumnSpec("author", filtered="choice", width=150),
    ColumnSpec("final AS", "number", width=90),
    ColumnSpec("best AS", "number", width=90),
    ColumnSpec("ending", filtered="choice", width=110),
    ColumnSpec("evaluations", "number", digits=0, width=110, is_wide=True),
    ColumnSpec("turns", "number", digits=0, width=80, is_wide=True),
    ColumnSpec("tokens", "number", digits=0, width=100, is_wide=True),
    ColumnSpec("minutes", "number", digits=1, width=94, is_wide=True),
    ColumnSpec("exploits", "tags", "choice", width=150, is_wide=True),
    ColumnSpec("hardware", filtered="choice", width=220, is_wide=True),
)
_EVALUATIONS = (
    ColumnSpec("evaluation", "link", width=110),
    ColumnSpec("turn", "number", digits=0, width=70),
    ColumnSpec("AS", "number", width=90),
    ColumnSpec("correct", width=90, hint="correct graphs"),
    ColumnSpec("statuses", "tags", is_wide=True),
    ColumnSpec("seconds", "number", digits=1, width=90, is_wide=True),
    ColumnSpec("first problem"),
)


def author_of(attempt: Attempt) -> str:
    """Return the author, by the name of the LLM if there is one."""
    return attempt.llm or attempt.author


def _index_row(attempt: Attempt, stem: str) -> list[Any]:
    return [
        [attempt.task, f"{stem}.html"],
        author_of(attempt),
        attempt.final_score,
        attempt.score,
        attempt.ending,
        len(attempt.evaluations),
        attempt.num_turns,
        attempt.input_tokens + attempt.output_tokens,
        attempt.seconds / 60,
        attempt.exploits,
        hardware_text(attempt.environment, attempt.settings),
    ]


def _write_attempt(site: SiteFolder, attempt: Attempt, stem: str) -> None:
    data: dict[str, Any] = {}
    if attempt.evaluations:
        rows = [
            _evaluation_row(number, evaluation, number == attempt.best)
            for number, evaluation in enumerate(attempt.evaluations)
        ]
        data["evaluations"] = table_spec(_EVALUATIONS, rows)
        points = [
            [number, evaluation.score, evaluation.is_passing]
            for number, evaluation in enumerate(attempt.evaluations)
        ]
        best = list(enumerate(best_so_far(attempt.evaluations)))
        data["curve"] = {"kind": "curve", "points": points, "best": best}
    turns = accumulate(message.role == "assistant" for message in attempt.messages)
    messages = [
        _message(site, message, turn, f"{stem}-message-{number}")
        for number, (message, turn) in enumerate(zip(attempt.messages, turns, strict=True))
    ]
    site.write_page(
        f"attempts/{stem}.html",
        "attempt",
        data,
        attempt=attempt,
        author=author_of(attempt),
        hardware=hardware_text(attempt.environment, attempt.settings),
        states=list(zip(attempt.evaluations, _diffs(attempt.evaluations), strict=True)),
        messages=messages,
    )


def _evaluation_row(number: int, evaluation: Evaluation, is_submitted: bool) -> list[Any]:
    variants = evaluation.variants
    num_correct = sum(variant.is_correct for variant in variants)
    problems = (variant.error for variant in variants if not variant.is_correct)
    return [
        [f"{number}, submitted" if is_submitted else str(number), f"#evaluation-{number}"],
        evaluation.turn,
        evaluation.score,
        f"{num_correct} of {len(variants)}",
        sorted({_status(variant) for variant in variants} | set(evaluation.exploits)),
        evaluation.seconds,
        next(filter(None, problems), ""),
    ]


def _status(variant: VariantResult) -> str:
    is_wrong = variant.status == "ok" and not variant.is_correct
    return "wrong values" if is_wrong else variant.status


def _diffs(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield the changes of each evaluated state of a folder since the state before."""
    before: Mapping[str, str] = {}
    for evaluation in evaluations:
        yield folder_diff(before, evaluation.files)
        before = evaluation.files


def _message(site: SiteFolder, message: Message, turn: int, chunk: str) -> dict[str, Any]:
    """Return a message as its page shows it; the script `chunk` gets a text that is too long."""
    text = message.content.strip()
    is_cut = len(text) > MAX_CHARACTERS
    if is_cut:
        path = site.out / "attempts" / f"{chunk}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, script(chunk, text))
    return {
        "role": message.role,
        "turn": turn if message.role == "assistant" else None,
        "text": text[:MAX_CHARACTERS],
        "is_long": len(text) > LONG_CHARACTERS,
        "num_characters": len(text),
        "chunk": chunk if is_cut else None,
        "reasoning": message.reasoning,
        "calls": [(call.name, _call_text(call)) for call in message.tool_calls],
    }


def _call_text(call: ToolCall) -> str:
    """Return the arguments of a call; texts of several lines keep their lines."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return shortened(call.arguments, MAX_CHARACTERS)
    parts = [
        f"{name}:\n{value}" if isinstance(value, str) and "\n" in value else f"{name}: {value}"
        for name, value in arguments.items()
    ]
    return shortened("\n".join(parts), MAX_CHARACTERS)
