"""The leaderboard over all boards, and for each board the pages of its scores and its trials."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from passnet.bench.groups import graph_groups
from passnet.bench.published import PublishedRun
from passnet.bench.scores import CandidateScore, is_correct, is_near, measured
from passnet.bench.shares import shipped_shares
from passnet.judge.score.share_score import share_score
from passnet.judge.score.sol import rated
from passnet.judge.trial import Trial
from passnet.pages.tables.cells import NOTHING, failures_in_words
from passnet.pages.tables.tables import sol_bounds
from passnet_site.pages.boards import DIMENSIONS, Board, BoardScores, Line, LineScores
from passnet_site.pages.safe_text import file_stem
from passnet_site.pages.site_folder import SiteFolder
from passnet_site.pages.table_spec import ColumnSpec, line_chart, short, table_spec

TABLE_HEIGHT = 620
STANDING_TAGS: Mapping[str, tuple[str, ...]] = {
    "run": (),
    "entry": ("from records",),
    "verified": ("verified",),
}

SOL = ColumnSpec(
    "S", "number", width=66, hint="0.5 as fast as eager torch, 1 at the hardware's limit T_sol"
)
SOL_INTERVAL = ColumnSpec("S interval", width=104, is_wide=True, hint="95 % interval of S")
ROOFLINE = ColumnSpec(
    "roof %", "percent", width=72, is_wide=True, hint="share of the roofline that is reached"
)
IN_NETS = ColumnSpec(
    "in nets",
    "number",
    width=150,
    hint="geometric mean over the whole nets that could be timed with the passes, of those that "
    "tasks came from; over torch.compile without passes",
)
BY_SHARE = ColumnSpec(
    "AS by share", "number", width=88, hint="tasks weighted by their shares of nets' time"
)
_LINES = (
    ColumnSpec("candidate", "link"),
    ColumnSpec("AS, with its 95 % interval", "speedup"),
    BY_SHARE,
    SOL,
    SOL_INTERVAL,
    ROOFLINE,
    IN_NETS,
    ColumnSpec("AS pooled", "number", width=80, is_wide=True, hint="all trials as one task"),
    ColumnSpec("correct %", "percent", width=88, is_wide=True, hint="trials that agree at t = -5"),
    ColumnSpec("tasks correct %", "percent", width=92, is_wide=True),
    ColumnSpec("not slower %", "percent", width=88, is_wide=True),
    ColumnSpec("speedup", "number", width=90, is_wide=True, hint="geometric mean, if correct"),
    ColumnSpec("trials", "number", digits=0, width=72, is_wide=True),
    ColumnSpec("not ok", width=130, is_wide=True),
)
_PUBLISHED = (
    ColumnSpec("candidate", "link"),
    ColumnSpec("AS", "number"),
    ColumnSpec("tasks", "number", digits=0, width=88),
)
_NETS = (
    ColumnSpec("candidate"),
    ColumnSpec("task", "text", "words"),
    ColumnSpec("net", "text", "words"),
    ColumnSpec("places", "number", digits=0, width=76, hint="where its passes apply"),
    ColumnSpec("on the task", "number", width=96, hint="speedup over torch.compile without passes"),
    ColumnSpec("share %", "percent", width=80, is_wide=True, hint="of the net's time"),
    ColumnSpec("predicted", "number", width=90, is_wide=True, hint="by Amdahl's law"),
    ColumnSpec("in the net, with its 95 % interval", "speedup"),
    ColumnSpec("again", "number", width=72, hint="torch.compile without passes over itself"),
    ColumnSpec("status", "text", "words", width=140, is_wide=True),
)
_FAILURES = (
    ColumnSpec("candidate"),
    ColumnSpec("status"),
    ColumnSpec("trials", "number", digits=0, width=90),
    ColumnSpec("for example"),
)


def write_index(
    site: SiteFolder,
    boards: Sequence[Board],
    scores: Sequence[BoardScores],
    published: Sequence[PublishedRun] = (),
) -> None:
    """Write the leaderboard, and the page of published scores by task if there are any."""
    data: dict[str, Any] = {
        "boards": [_index_board(*pair) for pair in zip(boards, scores, strict=True)]
    }
    if published:
        names = list(dict.fromkeys(task for run in published for task in run.tasks))
        columns = [ColumnSpec("task", "text", "words")]
        columns += [ColumnSpec(run.name, "number") for run in published]
        by_task = [[name, *(run.tasks.get(name) for run in published)] for name in names]
        tables = {"tasks": table_spec(columns, by_task, height=TABLE_HEIGHT)}
        site.write_page("published.html", "published", tables)
        rows = [[[run.name, "published.html", ["published"]], run.score, len(run.tasks)]
                for run in published]  # fmt: skip
        data["published"] = table_spec(_PUBLISHED, rows, (1, True))
    lines = [line for board in boards for line in board.lines]
    numbers = [
        (len({(board.suite_hash, task) for board in boards for task in board.tasks}), "tasks"),
        (len({(line.name, line.kind) for line in lines}), "candidates"),
        (sum(len(line.trials) for line in lines), "trials"),
    ]
    facts = {"boards": boards, "numbers": numbers, "published": published}
    site.write_page("index.html", "index", data, **facts)


def _index_board(board: Board, scores: BoardScores) -> dict[str, Any]:
    """Return a board for the leaderboard: its lines, and their scores by choice of graphs."""
    near = {line.name: _near(line) for line in board.lines}
    choices = []
    for choice, by_line in scores.scores.items():
        indices = [
            scores.names[by].index(name) if name else -1
            for by, name in zip(DIMENSIONS, choice, strict=True)
        ]
        graphs = scores.graphs[choice]
        choices.append([indices, [_cells(by_line[name], near[name], graphs) for name in near]])
    target = f"boards/{board.stem}.html"
    return {
        "suite": board.suite_name,
        "device": board.settings.judge.device,
        "hardware": board.hardware,
        "names": scores.names,
        "lines": [
            {
                "name": line.name,
                "kind": line.kind,
                "tags": _tags(line),
                "isPart": line.is_part,
                "target": target,
                "nets": _in_nets(line),
            }
            for line in board.lines
        ],
        "choices": choices,
    }


def _tags(line: Line) -> tuple[str, ...]:
    part = f"{len(line.trials)} of {line.num_graphs} graphs"
    return (*STANDING_TAGS[line.run.standing], *((part,) if line.is_part else ()))


def _near(line: Line) -> dict[str, bool]:
    """Return by graph if a trial is correct, or as near to float64 as eager PyTorch."""
    timed = (trial for trial in line.trials if trial.status != "unstable")
    return {trial.graph: is_correct(trial) or is_near(trial) for trial in timed}


def _cells(
    score: CandidateScore | None, near: Mapping[str, bool], graphs: Set[str]
) -> list[Any] | None:
    """Return a line's cells for a choice of graphs."""
    if score is None:
        return None
    chosen_near = [is_near for graph, is_near in near.items() if graph in graphs]
    columns = score.suite.columns
    cells = [
        _triple(score),
        score.sol.score,
        sol_bounds(score),
        score.sol.roofline_share,
        columns.subgraph_correct,
        columns.fast_1,
        sum(chosen_near) / len(chosen_near) if chosen_near else None,
        columns.geomean_speedup,
        score.num_trials,
        failures_in_words(score.statuses),
    ]
    return short(cells)


def _triple(score: CandidateScore) -> tuple[float, ...]:
    interval = score.intervals["both"]
    return score.suite.score, interval.low, interval.high


def write_board(site: SiteFolder, board: Board, scores: BoardScores) -> None:
    """Write the page of a board: scores by tolerance and by task, and how it was measured."""
    whole = scores.whole
    data = {
        "lines": line_table(board, whole, shipped_shares(board.suite_hash)),
        "es": _es_chart(whole),
        "speedups": _speedup_chart(board),
        "tasks": _task_table(board, whole),
    }
    if failures := _failures(board):
        data["failures"] = table_spec(_FAILURES, failures, (2, True))
    if nets := list(_net_rows(board)):
        data["nets"] = table_spec(_NETS, nets, (7, True))
    notes = dict.fromkeys(
        f"{line.run.name}: {line.run.note}" for line in board.lines if line.run.note
    )
    site.write_page(
        f"boards/{board.stem}.html",
        "board",
        data,
        board=board,
        notes=notes,
        failures=failures,
        nets=nets,
    )


def line_table(board: Board, scores: LineScores, shares: Mapping[str, float]) -> dict[str, Any]:
    """Return the table of a board's lines, with the AS by share if shares are known."""
    rows = [_line_row(line, scores[line.name], shares) for line in board.lines]
    shown = [n for n, column in enumerate(_LINES) if shares or column is not BY_SHARE]
    columns = [_LINES[n] for n in shown]
    return table_spec(columns, ([row[n] for n in shown] for row in rows), (1, True))


def _line_row(line: Line, score: CandidateScore | None, shares: Mapping[str, float]) -> list[Any]:
    name = [line.name, "", [line.kind, *_tags(line)]]
    if score is None:
        return [name, *[None] * 11, len(line.trials), "not timed"]
    columns, by_share = score.suite.columns, share_score(score.suite.tasks, shares)
    return [
        name,
        _triple(score),
        by_share.score if by_share else None,
        score.sol.score,
        sol_bounds(score),
        score.sol.roofline_share,
        _in_nets(line),
        score.suite.score_pooled,
        columns.subgraph_correct,
        columns.sample_correct,
        columns.fast_1,
        columns.geomean_speedup,
        score.num_trials,
        failures_in_words(score.statuses),
    ]


def _in_nets(line: Line) -> str | None:
    """Return a line's score in nets, and its source if that is not a run here."""
    found = line.run.nets_of(line.candidate)
    if found is None:
        return None
    return found.score_text + ("" if line.run.standing == "run" else ", from records")


def _net_rows(board: Board) -> Iterator[list[Any]]:
    """Yield a row for each pass folder in each net; lines of equal files have the same ones."""
    shown = set()
    for line in board.lines:
        found = line.run.nets_of(line.candidate)
        if found is None or found in shown:
            continue
        shown.add(found)
        source = "" if line.run.standing == "run" else " (from records)"
        for place in found.places:
            speedup = place.speedup and (place.speedup, place.low, place.high)
            yield [
                *(line.name + source, place.task, place.net, place.num_matches),
                place.task_speedup,
                *(place.share, place.predicted, speedup, place.again, place.error or place.status),
            ]


def _es_chart(scores: LineScores) -> dict[str, Any]:
    series = {
        name: list(score.suite.es.items()) for name, score in scores.items() if score is not None
    }
    x, y = {"label": "tolerance level t", "integer": True}, {"label": "ES_t", "log": True}
    return line_chart(series, x, y, rule=1, markers=True)


def _speedup_chart(board: Board) -> dict[str, Any]:
    """Return the chart of each line's share of correct trials up to every speedup."""
    series = {}
    for line in board.lines:
        speedups = sorted(t.speedup for t in line.trials if is_correct(t) and t.speedup)
        if speedups:
            last, step = len(speedups) - 1, max(1, len(speedups) // 200)
            indices = sorted({*range(0, last, step), last})
            series[line.name] = [(speedups[n], (n + 1) / len(speedups)) for n in indices]
    ends = [speedup for points in series.values() for speedup, _ in points] or [1.0]
    domain = [max(0.05, min(ends)), min(50.0, max(ends))]
    x = {"label": "speedup", "log": True, "domain": domain}
    return line_chart(series, x, {"label": "share of graphs %", "percent": True}, ruleX=1)


def _task_table(board: Board, scores: LineScores) -> dict[str, Any]:
    """Return a row for each task: its link, its graphs, and the AS of every line."""
    graphs = {(trial.task, trial.graph) for line in board.lines for trial in line.trials}
    num_graphs = Counter(task for task, _ in graphs)
    columns = [
        ColumnSpec("task", "link", "words"),
        ColumnSpec("graphs", "number", digits=0, width=88, is_wide=True),
        *(ColumnSpec(line.name, "number") for line in board.lines),
    ]
    rows = [
        [
            [task, f"../{task_page(board, task)}"],
            num_graphs[task],
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
    rows: list[list[Any]] = []
    for line in board.lines:
        by_status: dict[str, list[Trial]] = {}
        for trial in line.trials:
            if not is_correct(trial):
                by_status.setdefault(status_word(trial), []).append(trial)
        for status, failed in by_status.items():
            rows.append([line.name, status, len(failed), failed[0].error or NOTHING])
    return rows


def write_trials(site: SiteFolder, board: Board) -> None:
    """Write the page of all trials of a board."""
    suite = board.suite
    groups = {by: graph_groups(suite, by) for by in DIMENSIONS} if suite else {}
    groups = {by: names for by, names in groups.items() if len({*names.values()}) > 1}
    heads = ("size" if by == "ops" else by for by in groups)
    columns = (
        ColumnSpec("graph", "link", "words"),
        ColumnSpec("candidate", "text", "choice", width=150),
        ColumnSpec("speedup, with its 95 % interval", "speedup", digits=2),
        ColumnSpec("status", "text", "choice", width=100),
        SOL,
        ROOFLINE,
        ColumnSpec("t", "number", digits=0, width=48),
        ColumnSpec("eager ms", "number", digits=4, width=88, is_wide=True),
        *(ColumnSpec(head, "text", "choice", width=114, is_wide=True) for head in heads),
        ColumnSpec("message", "text", "words", width=140, is_wide=True),
    )
    rows = [
        [
            [trial.graph, f"../{task_page(board, trial.task)}"],
            line.name,
            speedup_triple(trial),
            status_word(trial),
            *limits_of(trial),
            trial.smallest_t,
            trial.reference_ms,
            *(names.get(trial.graph, "unknown") for names in groups.values()),
            "; ".join(filter(None, (*(f.name for f in trial.findings), trial.error or ""))),
        ]
        for line in board.lines
        for trial in line.trials
    ]
    data = {"trials": table_spec(columns, rows, height=TABLE_HEIGHT)}
    page = f"trials/{board.stem}.html"
    site.write_page(page, "trials", data, board=board, num_trials=len(rows))


def status_word(trial: Trial) -> str:
    """Return the status of a trial, in a word or two."""
    is_wrong = trial.status == "ok" and not is_correct(trial)
    return "wrong values" if is_wrong else trial.status


def limits_of(trial: Trial) -> tuple[float | None, float | None]:
    """Return a trial's S and the share of the roofline that it reaches."""
    return (None, None) if trial.status == "unstable" else rated(measured(trial))


def speedup_triple(trial: Trial) -> tuple[float, float | None, float | None] | None:
    """Return a trial's speedup with its interval; None if it was not measured."""
    if trial.speedup is None:
        return None
    return (trial.speedup, trial.speedup_low, trial.speedup_high)
