"""The pages of tasks: the graph drawn, every candidate's trials, findings, and pass folders."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from passnet.bench.groups import graph_groups
from passnet.bench.scores import is_correct
from passnet.core.records.serialise import write_text
from passnet.data.dataset.store import main_dtype
from passnet.errors import GraphError
from passnet.graph.text.render import render_program
from passnet.judge.suite.suite import Suite
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import CATALOGUE
from passnet.pages.figures.drawing import draw
from passnet.pages.tables.cells import formatted, ops_in_words
from passnet_site.pages.board_pages import (
    ROOFLINE,
    SOL,
    TABLE_HEIGHT,
    limits_of,
    speedup_triple,
    status_word,
    suite_stem,
    task_page,
)
from passnet_site.pages.boards import Board, Line
from passnet_site.pages.safe_text import file_stem
from passnet_site.pages.site_folder import SiteFolder
from passnet_site.pages.table_spec import ColumnSpec, table_spec

MAX_OPS_NAMED = 12
MAX_PROBLEMS = 60
"""Most findings and failures that a page shows in full; the table of trials has all."""

_TRIALS = (
    ColumnSpec("graph", filtered="words"),
    ColumnSpec("candidate", filtered="choice", width=150),
    ColumnSpec("status", filtered="choice", width=96),
    ColumnSpec("speedup, with its 95 % interval", "speedup", digits=2),
    SOL,
    ROOFLINE,
    ColumnSpec("t", "number", digits=0, width=48, hint="smallest tolerance level that it meets"),
    ColumnSpec("eager ms", "number", digits=4, width=84, is_wide=True),
    ColumnSpec("candidate ms", "number", digits=4, width=92, is_wide=True),
    ColumnSpec("error", width=78, is_wide=True, hint="relative, against float64"),
    ColumnSpec("eager's error", width=78, is_wide=True, hint="of eager torch, against float64"),
)


def write_tasks(site: SiteFolder, boards: Sequence[Board]) -> Iterator[str]:
    """Write the page of every task and the list of all, and yield the names of the tasks."""
    by_suite: dict[str, list[Board]] = {}
    for board in boards:
        by_suite.setdefault(board.suite_hash, []).append(board)
    rows = []
    for group in by_suite.values():
        first = group[0]
        tasks = {task.name: task for task in first.suite.tasks} if first.suite else {}
        for name in dict.fromkeys(task for board in group for task in board.tasks):
            task = tasks.get(name)
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
    data = {"tasks": table_spec(columns, rows, height=TABLE_HEIGHT)}
    site.write_page("tasks/index.html", "tasks", data)


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
        ops_in_words(task.ops, MAX_OPS_NAMED),
    ]


def _domain(suite: Suite | None, task: Task) -> str:
    """Return the domain of most graphs of a task."""
    groups = graph_groups(suite, "domain") if suite else {}
    counts = Counter(groups.get(graph.name, "unknown") for graph in task.graphs)
    return counts.most_common(1)[0][0]


def _write_task(site: SiteFolder, boards: Sequence[Board], name: str, task: Task | None) -> None:
    first = boards[0]
    data: dict[str, Any] = {}
    sections = []
    for board in boards:
        pairs = [(line, trial) for line in board.lines for trial in line.trials]
        pairs = [(line, trial) for line, trial in pairs if trial.task == name]
        if pairs:
            rows = (_trial_row(name, line, trial) for line, trial in pairs)
            data[f"trials-{len(sections)}"] = table_spec(_TRIALS, rows, height=TABLE_HEIGHT)
            sections.append(_section(board, name, pairs))
    facts: dict[str, str] = {}
    picture = program = None
    if task is not None:
        facts = _facts(task)
        data["graphs"] = _graph_table(task)
        picture = _draw(site, first, task)
        program = render_program(task.graphs[0].graph.program)
    site.write_page(
        task_page(first, name),
        "task",
        data,
        name=name,
        board=first,
        facts=facts,
        picture=picture,
        program=program,
        graphs=task.graphs if task else (),
        boards=sections,
    )


def _facts(task: Task) -> dict[str, str]:
    nets = sorted({graph.source.net for graph in task.graphs if graph.source})
    more = f" and {len(nets) - 4} more" if len(nets) > 4 else ""
    return {
        "graphs": str(len(task.graphs)),
        "dtypes": ", ".join(sorted({main_dtype(graph.graph.tensors) for graph in task.graphs})),
        "nets": ", ".join(nets[:4]) + more or "unknown",
        "ops": f"{len(task.ops)}: {ops_in_words(task.ops, MAX_OPS_NAMED)}",
    }


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
        *limits_of(trial),
        trial.smallest_t,
        trial.reference_ms,
        trial.candidate_ms,
        formatted(trial.relative_error, ".1e"),
        formatted(trial.eager_error, ".1e"),
    ]


def _section(board: Board, task: str, pairs: Sequence[tuple[Line, Trial]]) -> dict[str, Any]:
    """Return the data of a task on one board, besides the table of trials."""
    problems = _merged([problem for pair in pairs for problem in _problems(task, *pair)])
    matches: dict[str, Counter[str]] = defaultdict(Counter)
    for line, trial in pairs:
        matches[line.name].update(trial.matches)
    folders: list[dict[str, Any]] = []
    for line in {line.name: line for line, _ in pairs if line.kind == "passes"}.values():
        sources = line.run.sources.get((line.candidate, task), {})
        twin = next((f for f in folders if sources and f["sources"] == sources), None)
        if twin is not None:
            twin["candidate"] += f", {line.name}"
            continue
        counts = matches[line.name].items()
        words = ", ".join(f"{name} {count} times" for name, count in counts)
        folders.append({"candidate": line.name, "matches": words, "sources": sources})
    return {
        "board": board,
        "problems": problems[:MAX_PROBLEMS],
        "num_more_problems": len(problems[MAX_PROBLEMS:]),
        "folders": folders,
    }


def _problems(task: str, line: Line, trial: Trial) -> Iterator[dict[str, str]]:
    """Yield the findings and the failure of a trial."""
    graph = trial.graph.removeprefix(f"{task}-")
    for finding in trial.findings:
        entry = CATALOGUE.get(finding.name)
        yield {
            "weight": finding.weight,
            "title": finding.name,
            "candidate": line.name,
            "where": " · ".join(filter(None, (finding.place, graph))),
            "text": finding.evidence,
            "meaning": entry.meaning if entry else "",
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


def _merged(problems: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return problems, merged if they differ only in their graph."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for problem in problems:
        key = tuple(problem[name] for name in ("weight", "title", "candidate", "text"))
        groups.setdefault(key, []).append(problem)
    merged = []
    for same in groups.values():
        more = f" and {len(same) - 1} more graphs" if len(same) > 1 else ""
        merged.append({**same[0], "where": same[0]["where"] + more})
    return merged
