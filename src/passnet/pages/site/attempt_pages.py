"""The pages of attempts: turns, tool calls, scores, and how the files of a folder changed."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from passnet.agent.attempts.attempt import Attempt, Evaluation, Message, ToolCall, VariantResult
from passnet.agent.trajectories.stats import best_so_far, summarise
from passnet.core.records.serialise import write_text
from passnet.pages.site.boards import hardware_text
from passnet.pages.site.pages import SiteFolder
from passnet.pages.site.table_spec import ColumnSpec, of_text_table, table_spec
from passnet.pages.site.text import file_stem, folder_diff, script
from passnet.pages.tables.attempt_tables import stats_tables

TABLE_HEIGHT = 620
LONG_CHARACTERS = 900
"""A longer message is folded."""

MAX_CHARACTERS = 12_000
"""Of a longer message the rest is in a script of its own, which is fetched when asked for."""


def write_attempts(site: SiteFolder, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Write the page of every attempt, and the list of all; gives the task of each."""
    rows = []
    for number, attempt in enumerate(attempts):
        stem = f"{number:04}-{file_stem(attempt.task)}"
        _write_attempt(site, attempt, stem)
        rows.append(_index_row(attempt, stem))
        yield attempt.task
    stats = summarise(attempts)
    tables = stats_tables(stats)
    curves = [
        {
            "name": each.name,
            "points": [[n, score] for n, score in enumerate(each.curve, 1) if score is not None],
        }
        for each in stats
        if each.curve
    ]
    given: dict[str, Any] = {f"stats-{n}": of_text_table(table) for n, table in enumerate(tables)}
    given["attempts"] = table_spec(_INDEX, rows, height=TABLE_HEIGHT)
    if curves:
        given["curves"] = {
            "kind": "lines",
            "series": curves,
            "rule": 1,
            "markers": True,
            "x": {"label": "evaluations", "integer": True},
            "y": {"label": "best AS", "log": True},
        }
    site.write_page(
        "attempts/index.html", "attempts", given, tables=tables, section="attempts/index.html"
    )


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
    given: dict[str, Any] = {}
    if attempt.evaluations:
        given["evaluations"] = _evaluation_table(attempt)
        given["curve"] = {
            "kind": "curve",
            "points": [
                [number, each.score, each.is_passing]
                for number, each in enumerate(attempt.evaluations)
            ],
            "best": list(enumerate(best_so_far(attempt.evaluations))),
        }
    messages = []
    turn = 0
    for number, message in enumerate(attempt.messages):
        turn += message.role == "assistant"
        messages.append(_message(site, message, number, turn, stem))
    site.write_page(
        f"attempts/{stem}.html",
        "attempt",
        given,
        name=f"{attempt.task} by {author_of(attempt)}",
        outcome=_outcome(attempt),
        facts=_facts(attempt),
        evaluations=bool(attempt.evaluations),
        files=attempt.files,
        states=list(_states(attempt.evaluations)),
        messages=messages,
        section="attempts/index.html",
    )


def _outcome(attempt: Attempt) -> str:
    """Return the outcome of an attempt, in a sentence or two."""
    if attempt.best is None:
        text = "Nothing was submitted."
    elif attempt.final_score is not None:
        text = (
            f"Evaluation {attempt.best} is submitted; measured anew at the end, its AS is "
            f"{attempt.final_score:.3f}."
        )
    elif attempt.score is not None:
        text = f"Evaluation {attempt.best} is submitted, with an AS of {attempt.score:.3f}."
    else:
        text = f"Evaluation {attempt.best} is submitted."
    extra = [attempt.error or "", attempt.untimed or ""]
    if attempt.exploits:
        extra.append(f"Rejected as a cheat on the way: {', '.join(attempt.exploits)}.")
    return " ".join([text, *filter(None, extra)])


def _facts(attempt: Attempt) -> list[tuple[str, str]]:
    facts = [
        ("author", author_of(attempt)),
        ("suite", f"{attempt.suite}, {attempt.suite_hash[:12]}"),
        ("attempt", str(attempt.number + 1)),
        ("ending", attempt.ending),
        ("turns", str(attempt.num_turns)),
        ("evaluations", str(len(attempt.evaluations))),
        ("time", f"{attempt.seconds / 60:.1f} min"),
        ("hardware", hardware_text(attempt.environment, attempt.settings)),
        ("versions", ", ".join(f"{name} {text}" for name, text in attempt.versions.items())),
        ("rules", attempt.settings.judge.rules),
        ("started", attempt.started),
    ]
    if attempt.input_tokens or attempt.output_tokens:
        facts.append(("tokens", f"{attempt.input_tokens:,} in, {attempt.output_tokens:,} out"))
    if attempt.cost is not None:
        facts.append(("cost", f"${attempt.cost:.2f}"))
    if attempt.num_bad_actions:
        facts.append(("calls that could not be done", str(attempt.num_bad_actions)))
    return facts


def _evaluation_table(attempt: Attempt) -> dict[str, Any]:
    columns = (
        ColumnSpec("evaluation", "link", width=110),
        ColumnSpec("turn", "number", digits=0, width=70),
        ColumnSpec("AS", "number", width=90),
        ColumnSpec("right", width=90, hint="graphs that are correct"),
        ColumnSpec("statuses", "tags", is_wide=True),
        ColumnSpec("seconds", "number", digits=1, width=90, is_wide=True),
        ColumnSpec("first problem"),
    )
    rows = []
    for number, each in enumerate(attempt.evaluations):
        right = sum(variant.is_correct for variant in each.variants)
        problem = next((v.error for v in each.variants if v.error and not v.is_correct), None)
        words = f"{number}, submitted" if number == attempt.best else str(number)
        rows.append([
            [words, f"#evaluation-{number}"],
            each.turn,
            each.score,
            f"{right} of {len(each.variants)}",
            sorted({_status(variant) for variant in each.variants} | set(each.exploits)),
            each.seconds,
            problem or "",
        ])  # fmt: skip
    return table_spec(columns, rows)


def _status(variant: VariantResult) -> str:
    """Return the status of a state on a graph, in a word or two."""
    is_wrong = variant.status == "ok" and not variant.is_correct
    return "wrong values" if is_wrong else variant.status


def _states(evaluations: Sequence[Evaluation]) -> Iterator[dict[str, Any]]:
    """Yield the evaluated states of a folder, each with its changes since the state before."""
    before: dict[str, str] = {}
    for number, each in enumerate(evaluations):
        score = "not timed" if each.score is None else f"AS {each.score:.3f}"
        right = sum(variant.is_correct for variant in each.variants)
        yield {
            "number": number,
            "turn": each.turn,
            "summary": f"{score}, {right} of {len(each.variants)} graphs correct",
            "diff": folder_diff(before, each.files),
        }
        before = dict(each.files)


def _message(
    site: SiteFolder, message: Message, number: int, turn: int, stem: str
) -> dict[str, Any]:
    text = message.content.strip()
    chunk = None
    if len(text) > MAX_CHARACTERS:
        chunk = f"{stem}-message-{number}"
        path = site.out / "attempts" / f"{chunk}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, script(chunk, text))
    return {
        "role": message.role,
        "turn": turn if message.role == "assistant" else None,
        "text": text[:MAX_CHARACTERS],
        "is_long": len(text) > LONG_CHARACTERS,
        "first_line": text.partition("\n")[0][:160],
        "num_characters": len(text),
        "chunk": chunk,
        "reasoning": message.reasoning,
        "calls": [{"name": call.name, "text": _call_text(call)} for call in message.tool_calls],
    }


def _call_text(call: ToolCall) -> str:
    """Return the arguments of a call; texts of several lines keep their lines."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments[:MAX_CHARACTERS]
    if not isinstance(arguments, dict):
        return call.arguments[:MAX_CHARACTERS]
    parts = [
        f"{name}:\n{value}" if isinstance(value, str) and "\n" in value else f"{name}: {value}"
        for name, value in arguments.items()
    ]
    return "\n".join(parts)[:MAX_CHARACTERS]
