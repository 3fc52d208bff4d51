"""The pages of boards: the leaderboard over all of them, and for each its scores and its trials."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from passnet.bench.groups import graph_groups
from passnet.bench.scores import CandidateScore
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.trial import Trial
from passnet.pages.site.boards import Board, Line
from passnet.pages.site.pages import SiteFolder
from passnet.pages.site.slices import DIMENSIONS, BoardScores
from passnet.pages.site.table_spec import ColumnSpec, table_spec
from passnet.pages.site.text import file_stem

TABLE_HEIGHT = 620
SIZE = "size"
STANDING_TAGS: Mapping[str, tuple[str, ...]] = {
    "run": (),
    "entry": ("from records",),
    "verified": ("verified",),
}

_LINES = (
    ColumnSpec("candidate", "link"),
    ColumnSpec("AS, with its 95 % interval", "speedup"),
    ColumnSpec("AS pooled", "number", width=80, is_wide=True, hint="all trials as one task"),
    ColumnSpec("correct %", "percent", width=88, is_wide=True, hint="trials that agree at t = -5"),
    ColumnSpec("tasks correct %", "percent", width=92, is_wide=True),
    ColumnSpec("not slower %", "percent", width=88, is_wide=True),
    ColumnSpec("speedup", "number", width=90, is_wide=True, hint="geometric mean, if correct"),
    ColumnSpec("trials", "number", digits=0, width=72, is_wide=True),
    ColumnSpec("not ok", width=130, is_wide=True),
)


def write_index(site: SiteFolder, boards: Sequence[Board], scores: Sequence[BoardScores]) -> None:
    """Write the leaderboard."""
    given = [_index_board(board, each) for board, each in zip(boards, scores, strict=True)]
    lines = [line for board in boards for line in board.lines]
    numbers = [
        (len({(board.suite_hash, task) for board in boards for task in board.tasks}), "tasks"),
        (len({(line.name, line.kind) for line in lines}), "candidates"),
        (sum(len(line.trials) for line in lines), "trials"),
    ]
    site.write_page(
        "index.html",
        "index",
        {"boards": given},
        boards=boards,
        numbers=numbers,
        section="index.html",
    )


def _index_board(board: Board, scores: BoardScores) -> dict[str, Any]:
    """Return a board for the leaderboard: its lines, and their scores by choice of graphs."""
    near = {line.name: _near(line) for line in board.lines}
    choices = []
    for choice, by_line in scores.scores.items():
        indices = [
            scores.names[by].index(name) if name else -1
            for by, name in zip(DIMENSIONS, choice, strict=True)
        ]
        graphs = _graphs(board, choice)
        choices.append(
            [indices, [_cells(by_line[line.name], near[line.name], graphs) for line in board.lines]]
        )
    return {
        "suite": board.suite_name,
        "device": board.settings.judge.device,
        "hardware": board.hardware,
        "names": scores.names,
        "lines": [
            {
                "name": line.name,
                "kind": line.kind,
                "tags": STANDING_TAGS[line.standing],
                "target": f"boards/{board.stem}.html",
            }
            for line in board.lines
        ],
        "choices": choices,
    }


def _graphs(board: Board, choice: Sequence[str | None]) -> set[str] | None:
    """Return the graphs of a choice; None for all."""
    if board.suite is None or not any(choice):
        return None
    groups = {by: graph_groups(board.suite, by) for by in DIMENSIONS}
    return {
        graph.name
        for graph in board.suite.graphs
        if all(
            name is None or groups[by][graph.name] == name
            for by, name in zip(DIMENSIONS, choice, strict=True)
        )
    }


def _near(line: Line) -> dict[str, bool]:
    """Return by graph if a trial is correct, or as near to float64 as eager PyTorch."""
    return {
        trial.graph: is_correct(trial) or _is_near(trial)
        for trial in line.trials
        if trial.status != "unstable"
    }


def is_correct(trial: Trial) -> bool:
    """Return whether a trial ran and its outputs agree at t = -5."""
    return trial.status == "ok" and trial.smallest_t is not None and trial.smallest_t <= CORRECT_AT


def _is_near(trial: Trial) -> bool:
    errors = (trial.relative_error, trial.eager_error)
    if trial.status != "ok" or errors[0] is None or errors[1] is None:
        return False
    return errors[0] <= errors[1]


def _cells(
    score: CandidateScore | None, near: Mapping[str, bool], graphs: set[str] | None
) -> list[Any] | None:
    """Return a line's cells for a choice of graphs."""
    if score is None:
        return None
    chosen = [is_near for graph, is_near in near.items() if graphs is None or graph in graphs]
    columns = score.suite.columns
    return [
        _triple(score),
        round(columns.subgraph_correct, 5),
        round(columns.fast_1, 5),
        round(sum(chosen) / len(chosen), 5) if chosen else None,
        _rounded(columns.geomean_speedup),
        score.num_trials,
        _not_ok(score),
    ]


def _triple(score: CandidateScore) -> tuple[float, ...]:
    interval = score.intervals["both"]
    return tuple(float(f"{x:.5g}") for x in (score.suite.score, interval.low, interval.high))


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _not_ok(score: CandidateScore) -> str:
    failed = [f"{count} {name}" for name, count in score.statuses.items() if name != "ok"]
    return ", ".join(failed) or "–"


def write_board(site: SiteFolder, board: Board, scores: BoardScores) -> None:
    """Write the page of a board: scores by tolerance and by task, and how it was measured."""
    whole = scores.whole
    given = {
        "lines": table_spec(_LINES, (_line_row(line, whole[line.name]) for line in board.lines),
                            (1, True)),
        "es": _es_chart(whole),
        "speedups": _speedup_chart(board),
        "tasks": _task_table(board, whole),
    }  # fmt: skip
    failures = _failures(board)
    if failures:
        heads = ("candidate", "status", "trials", "for example")
        given["failures"] = table_spec(
            [ColumnSpec(head, "number" if head == "trials" else "text", digits=0,
                        width=90 if head == "trials" else 0) for head in heads],
            failures,
            (2, True),
        )  # fmt: skip
    notes = [f"{line.run.name}: {line.run.note}" for line in board.lines if line.run.note]
    site.write_page(
        f"boards/{board.stem}.html",
        "board",
        given,
        board=board,
        settings=_settings(board),
        notes=dict.fromkeys(notes),
        not_covered=board.lines[0].run.info.not_covered,
        failures=failures,
        section="index.html",
    )


def _line_row(line: Line, score: CandidateScore | None) -> list[Any]:
    named = [line.name, "", [line.kind, *STANDING_TAGS[line.standing]]]
    if score is None:
        return [named, None, None, None, None, None, None, len(line.trials), "not timed"]
    columns = score.suite.columns
    return [
        named,
        _triple(score),
        score.suite.score_pooled,
        columns.subgraph_correct,
        columns.sample_correct,
        columns.fast_1,
        columns.geomean_speedup,
        score.num_trials,
        _not_ok(score),
    ]


def _es_chart(scores: Mapping[str, CandidateScore | None]) -> dict[str, Any]:
    series = [
        {"name": name, "points": [[t, _rounded(es)] for t, es in score.suite.es.items()]}
        for name, score in scores.items()
        if score is not None
    ]
    return {
        "kind": "lines",
        "series": series,
        "rule": 1,
        "markers": True,
        "x": {"label": "tolerance level t", "integer": True},
        "y": {"label": "ES_t", "log": True},
    }


def _speedup_chart(board: Board) -> dict[str, Any]:
    """Return the chart of each line's share of correct trials up to every speedup."""
    series = []
    for line in board.lines:
        found = sorted(
            trial.speedup for trial in line.trials if is_correct(trial) and trial.speedup
        )
        if not found:
            continue
        step = max(1, len(found) // 200)
        points = [
            [float(f"{found[index]:.4g}"), round((index + 1) / len(found), 4)]
            for index in sorted({*range(0, len(found), step), len(found) - 1})
        ]
        series.append({"name": line.name, "points": points})
    ends = [point[0] for each in series for point in each["points"]] or [1.0]
    return {
        "kind": "lines",
        "series": series,
        "ruleX": 1,
        "x": {
            "label": "speedup",
            "log": True,
            "domain": [max(0.05, min(ends)), min(50.0, max(ends))],
        },
        "y": {"label": "share of graphs %", "percent": True},
    }


def _task_table(board: Board, scores: Mapping[str, CandidateScore | None]) -> dict[str, Any]:
    """Return a row for each task: its link, its graphs, and the AS of every line."""
    counts: dict[str, set[str]] = defaultdict(set)
    for line in board.lines:
        for trial in line.trials:
            counts[trial.task].add(trial.graph)
    columns = [
        ColumnSpec("task", "link", "words"),
        ColumnSpec("graphs", "number", digits=0, width=88, is_wide=True),
        *(ColumnSpec(line.name, "number") for line in board.lines),
    ]
    rows = [
        [
            [task, f"../{task_page(board, task)}"],
            len(counts[task]),
            *(None if score is None else score.suite.tasks.get(task) for score in scores.values()),
        ]
        for task in board.tasks
    ]
    return table_spec(columns, rows, height=TABLE_HEIGHT)


def task_page(board: Board, task: str) -> str:
    """Return the path of the page of a task."""
    return f"tasks/{suite_stem(board.suite_name, board.suite_hash)}/{file_stem(task)}.html"


def suite_stem(name: str, content_hash: str) -> str:
    """Return the folder of the pages of a suite's tasks; every content has another one."""
    return file_stem(f"{file_stem(name)}-{content_hash[:8]}".lower())


def _failures(board: Board) -> list[list[Any]]:
    rows = []
    for line in board.lines:
        counts = Counter(trial.status for trial in line.trials if trial.status != "ok")
        for status, count in counts.items():
            first = next(trial for trial in line.trials if trial.status == status)
            rows.append([line.name, status, count, first.error or "–"])
        wrong = [trial for trial in line.trials if trial.status == "ok" and not is_correct(trial)]
        if wrong:
            rows.append([line.name, "wrong values", len(wrong), wrong[0].error or "–"])
    return rows


def _settings(board: Board) -> list[tuple[str, str]]:
    """Return the settings and environment of the first run of a board, in words."""
    settings, env = board.settings, board.environment
    judge = settings.judge
    facts = [
        ("hardware", board.hardware),
        ("memory", f"{env.memory_mib:,} MiB"),
        ("system", env.system),
        ("torch", env.torch),
        ("judge", f"passnet {env.passnet}"),
        ("compiler", env.compiler),
        ("rules", judge.rules),
        ("memory order of outputs", judge.strides),
        ("confined by", settings.sandbox),
        ("suite", f"{board.suite_name}, {board.suite_hash[:12]}"),
    ]
    if judge.timing is not None:
        facts.append(("seconds a candidate and graph", f"{judge.timing.seconds:g}"))
    if env.gpu is not None:
        facts.append(("GPU", f"{env.gpu.name}, driver {env.gpu.driver}"))
    return facts


def write_trials(site: SiteFolder, board: Board) -> None:
    """Write the page of all trials of a board."""
    suite = board.suite
    groups = {by: graph_groups(suite, by) for by in DIMENSIONS} if suite else {}
    groups = {by: names for by, names in groups.items() if len({*names.values()}) > 1}
    columns = (
        ColumnSpec("graph", "link", "words"),
        ColumnSpec("candidate", "text", "choice", width=150),
        ColumnSpec("status", "text", "choice", width=100),
        ColumnSpec("speedup, with its 95 % interval", "speedup", digits=2),
        ColumnSpec("t", "number", digits=0, width=48),
        ColumnSpec("eager ms", "number", digits=4, width=88, is_wide=True),
        *(ColumnSpec(SIZE if by == "ops" else by, "text", "choice", width=114, is_wide=True)
          for by in groups),
        ColumnSpec("message", "text", "words", width=140, is_wide=True),
    )  # fmt: skip
    rows = [
        [
            [trial.graph, f"../{task_page(board, trial.task)}"],
            line.name,
            status_word(trial),
            speedup_triple(trial),
            trial.smallest_t,
            trial.reference_ms,
            *(names.get(trial.graph, "unknown") for names in groups.values()),
            "; ".join([*(found.name for found in trial.findings), trial.error or ""]).strip("; "),
        ]
        for line in board.lines
        for trial in line.trials
    ]
    site.write_page(
        f"boards/{board.stem}-trials.html",
        "trials",
        {"trials": table_spec(columns, rows, height=TABLE_HEIGHT)},
        board=board,
        num_trials=len(rows),
        section="index.html",
    )


def status_word(trial: Trial) -> str:
    """Return the status of a trial, in a word or two."""
    is_wrong = trial.status == "ok" and not is_correct(trial)
    return "wrong values" if is_wrong else trial.status


def speedup_triple(trial: Trial) -> tuple[float, float | None, float | None] | None:
    """Return a trial's speedup with its interval; None if it was not measured."""
    if trial.speedup is None:
        return None
    return (trial.speedup, trial.speedup_low, trial.speedup_high)
