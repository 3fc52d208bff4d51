"""The pages of tasks: the graph drawn, every candidate's trials, findings, and pass folders."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from passnet.bench.groups import graph_groups
from passnet.core.records.serialise import write_text
from passnet.data.dataset.store import main_dtype
from passnet.errors import GraphError
from passnet.graph.text.render import render_program
from passnet.judge.findings import CATALOGUE
from passnet.judge.suite.suite import Suite
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.pages.figures.drawing import draw
from passnet.pages.site.board_pages import (
    TABLE_HEIGHT,
    is_correct,
    speedup_triple,
    status_word,
    suite_stem,
    task_page,
)
from passnet.pages.site.boards import Board, Line
from passnet.pages.site.pages import SiteFolder
from passnet.pages.site.table_spec import ColumnSpec, table_spec
from passnet.pages.site.text import file_stem

MAX_OPS_NAMED = 12
MAX_PROBLEMS = 60
"""Findings and failures that a page tells in full; the table of trials has all."""

_TRIALS = (
    ColumnSpec("graph", filtered="words"),
    ColumnSpec("candidate", filtered="choice", width=150),
    ColumnSpec("status", filtered="choice", width=96),
    ColumnSpec("speedup, with its 95 % interval", "speedup", digits=2),
    ColumnSpec("t", "number", digits=0, width=48, hint="smallest tolerance level that it meets"),
    ColumnSpec("eager ms", "number", digits=4, width=84, is_wide=True),
    ColumnSpec("candidate ms", "number", digits=4, width=92, is_wide=True),
    ColumnSpec("error", width=78, is_wide=True, hint="relative, against float64"),
    ColumnSpec("eager's error", width=78, is_wide=True, hint="of eager torch, against float64"),
)


def write_tasks(site: SiteFolder, boards: Sequence[Board]) -> Iterator[str]:
    """Write the page of every task, and the list of all; gives the name of each that is written."""
    by_suite: dict[str, list[Board]] = {}
    for board in boards:
        by_suite.setdefault(board.suite_hash, []).append(board)
    rows = []
    for group in by_suite.values():
        first = group[0]
        known = {task.name: task for task in first.suite.tasks} if first.suite else {}
        for name in dict.fromkeys(task for board in group for task in board.tasks):
            task = known.get(name)
            _write_task(site, group, name, task)
            rows.append(_index_row(first, name, task))
            yield name
    columns = (
        ColumnSpec("task", "link", "words"),
        ColumnSpec("suite", filtered="choice", width=200),
        ColumnSpec("graphs", "number", digits=0, width=90),
        ColumnSpec("ops", "number", digits=0, width=70),
        ColumnSpec("domain", filtered="choice", width=120, is_wide=True),
        ColumnSpec("sequence of ops", "text", "words", is_wide=True),
    )
    site.write_page("tasks/index.html", "tasks", {"tasks": table_spec(columns, rows,
                    height=TABLE_HEIGHT)}, section="tasks/index.html")  # fmt: skip


def _index_row(board: Board, name: str, task: Task | None) -> list[Any]:
    target = task_page(board, name).removeprefix("tasks/")
    if task is None:
        return [[name, target], board.suite_name, None, None, "unknown", ""]
    return [
        [name, target],
        board.suite_name,
        len(task.graphs),
        len(task.graphs[0].graph.program.ops),
        _domain(board.suite, task),
        short_ops(task.ops),
    ]


def _domain(suite: Suite | None, task: Task) -> str:
    """Return the domain of most graphs of a task."""
    groups = graph_groups(suite, "domain") if suite else {}
    counts = Counter(groups.get(graph.name, "unknown") for graph in task.graphs)
    return counts.most_common(1)[0][0]


def short_ops(ops: Sequence[str]) -> str:
    """Return a sequence of ops in a few words."""
    names = [op.rpartition(".")[2] for op in ops]
    more = f" … {len(names) - MAX_OPS_NAMED} more" if len(names) > MAX_OPS_NAMED else ""
    return " ".join(names[:MAX_OPS_NAMED]) + more


def _write_task(site: SiteFolder, boards: Sequence[Board], name: str, task: Task | None) -> None:
    first = boards[0]
    page = task_page(first, name)
    given: dict[str, Any] = {}
    sections = []
    for number, board in enumerate(boards):
        trials = [
            (line, trial) for line in board.lines for trial in line.trials if trial.task == name
        ]
        if not trials:
            continue
        given[f"trials-{len(sections)}"] = table_spec(
            _TRIALS, (_trial_row(name, line, trial) for line, trial in trials), height=TABLE_HEIGHT
        )
        sections.append(_section(boards[number], name, trials))
    facts = [("suite", f"{first.suite_name}, {first.suite_hash[:12]}")]
    picture = program = None
    if task is not None:
        facts += _facts(task)
        given["graphs"] = _graph_table(task)
        picture = _draw(site, first, task)
        program = render_program(task.graphs[0].graph.program)
    site.write_page(
        page,
        "task",
        given,
        name=name,
        suite_name=first.suite_name,
        facts=facts,
        picture=picture,
        program=program,
        graph=task.graphs[0].name if task else None,
        graphs=len(task.graphs) if task else 0,
        boards=sections,
        section="tasks/index.html",
    )


def _facts(task: Task) -> list[tuple[str, str]]:
    nets = sorted({graph.source.net for graph in task.graphs if graph.source})
    dtypes = sorted({main_dtype(graph.graph.tensors) for graph in task.graphs})
    named = ", ".join(nets[:4]) + (f" and {len(nets) - 4} more" if len(nets) > 4 else "")
    return [
        ("graphs", str(len(task.graphs))),
        ("dtypes", ", ".join(dtypes)),
        ("nets", named or "unknown"),
        ("ops", f"{len(task.ops)}: {short_ops(task.ops)}"),
    ]


def _draw(site: SiteFolder, board: Board, task: Task) -> str | None:
    """Draw a task's first graph and return its file name; None if shapes are unknown."""
    graph = task.graphs[0]
    stem = file_stem(task.name)
    path = site.out / "tasks" / suite_stem(board.suite_name, board.suite_hash) / f"{stem}.svg"
    try:
        picture = draw(graph.graph)
    except GraphError:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, picture)
    return path.name


def _graph_table(task: Task) -> dict[str, Any]:
    columns = (
        ColumnSpec("graph", filtered="words"),
        ColumnSpec("net", filtered="words", is_wide=True),
        ColumnSpec("library", filtered="choice", width=130, is_wide=True),
        ColumnSpec("domain", filtered="choice", width=110, is_wide=True),
        ColumnSpec("dtype", filtered="choice", width=100),
        ColumnSpec("arguments"),
    )
    return table_spec(columns, map(_graph_row, task.graphs), height=TABLE_HEIGHT)


def _graph_row(graph: TaskGraph) -> list[Any]:
    source, tensors = graph.source, graph.graph.tensors
    shapes = ", ".join("×".join(map(str, spec.shape)) or "scalar" for spec in tensors[:8])
    return [
        graph.name.removeprefix(f"{graph.task}-"),
        source.net if source else "unknown",
        f"{source.library} {source.version}" if source else "unknown",
        (source.domain if source else "") or "unknown",
        main_dtype(tensors),
        shapes + (f", and {len(tensors) - 8} more" if len(tensors) > 8 else ""),
    ]


def _trial_row(task: str, line: Line, trial: Trial) -> list[Any]:
    return [
        trial.graph.removeprefix(f"{task}-"),
        line.name,
        status_word(trial),
        speedup_triple(trial),
        trial.smallest_t,
        trial.reference_ms,
        trial.candidate_ms,
        _error(trial.relative_error),
        _error(trial.eager_error),
    ]


def _error(value: float | None) -> str:
    return "–" if value is None else f"{value:.1e}"


def _section(board: Board, task: str, trials: Sequence[tuple[Line, Trial]]) -> dict[str, Any]:
    """Return the data of a task on one board, besides the table of trials."""
    problems = [problem for line, trial in trials for problem in _problems(task, line, trial)]
    folders: list[dict[str, Any]] = []
    for line in dict.fromkeys(line.name for line, _ in trials):
        its = [(each, trial) for each, trial in trials if each.name == line]
        owner = its[0][0]
        if owner.kind != "passes":
            continue
        matches: Counter[str] = Counter()
        for _, trial in its:
            matches.update(trial.matches)
        sources = owner.run.sources.get((owner.candidate, task), {})
        same = [folder for folder in folders if sources and folder["sources"] == sources]
        if same:
            same[0]["candidate"] += f", {line}"
            continue
        folders.append({
            "candidate": line,
            "matches": ", ".join(f"{name} {count} times" for name, count in matches.items()),
            "sources": sources,
        })  # fmt: skip
    return {
        "hardware": board.hardware,
        "versions": board.versions,
        "problems": _told_once(problems)[:MAX_PROBLEMS],
        "folders": folders,
    }


def _problems(task: str, line: Line, trial: Trial) -> Iterator[dict[str, str]]:
    """Yield the findings and the failure of a trial."""
    graph = trial.graph.removeprefix(f"{task}-")
    for found in trial.findings:
        known = CATALOGUE.get(found.name)
        yield {
            "weight": found.weight,
            "title": found.name,
            "candidate": line.name,
            "where": " · ".join(filter(None, (found.place, graph))),
            "text": found.evidence,
            "meaning": known.meaning if known else "",
        }
    if not is_correct(trial) and trial.status != "cheat":
        yield {
            "weight": "failed" if trial.status != "unstable" else "not timed",
            "title": status_word(trial),
            "candidate": line.name,
            "where": graph,
            "text": trial.error or "",
            "meaning": "",
        }


def _told_once(problems: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return problems, merged if they differ only in their graph."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for problem in problems:
        key = tuple(problem[name] for name in ("weight", "title", "candidate", "text"))
        groups.setdefault(key, []).append(problem)
    told = []
    for same in groups.values():
        more = f" and {len(same) - 1} more graphs" if len(same) > 1 else ""
        told.append({**same[0], "where": same[0]["where"] + more})
    return told
