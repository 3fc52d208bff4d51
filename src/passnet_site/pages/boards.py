"""Boards: runs of one suite on one hardware, which may share a column, and their scores."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from passnet.bench.environment import Environment, hardware_text
from passnet.bench.groups import graph_groups, group_order
from passnet.bench.scores import CandidateScore
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite
from passnet.judge.trial import Trial
from passnet_site.leaderboard.board_settings import shared_settings
from passnet_site.leaderboard.entry import scores_of
from passnet_site.pages.measured import MeasuredRun
from passnet_site.pages.safe_text import file_stem

DIMENSIONS = ("dtype", "ops", "domain")
"""The groupings that the leaderboard filters graphs by."""

Choice: TypeAlias = tuple[str | None, ...]
"""A group, or None for all, for each of `DIMENSIONS`."""

LineScores: TypeAlias = dict[str, CandidateScore | None]
"""The scores by line; None where nothing could be timed."""


@dataclass(frozen=True)
class Line:
    """A candidate of a run on a board, under a name of its own."""

    name: str
    kind: str
    run: MeasuredRun
    candidate: str
    trials: tuple[Trial, ...]
    num_graphs: int
    """The graphs of the board; a run that was stopped has trials of fewer."""

    @property
    def is_part(self) -> bool:
        """Return whether it lacks graphs of the board, so that its scores compare with no other."""
        return len(self.trials) < self.num_graphs


@dataclass(frozen=True)
class Board:
    """Comparable lines: one suite (None if it is not known here), one hardware, one judge."""

    stem: str
    suite_name: str
    suite_hash: str
    suite: Suite | None
    environment: Environment
    settings: RunSettings
    lines: tuple[Line, ...]

    @property
    def hardware(self) -> str:
        """The hardware in words."""
        return hardware_text(self.environment, self.settings)

    @property
    def versions(self) -> str:
        """The software in words."""
        env = self.environment
        return f"torch {env.torch}, passnet {env.passnet}, Python {env.python}, {env.compiler}"

    @property
    def tasks(self) -> list[str]:
        """The names of its tasks, in the order of the suite or of the trials."""
        if self.suite is not None:
            measured = {trial.task for line in self.lines for trial in line.trials}
            return [task.name for task in self.suite.tasks if task.name in measured]
        return list(dict.fromkeys(trial.task for line in self.lines for trial in line.trials))


def _key(run: MeasuredRun) -> tuple[object, ...]:
    """Return the facts that must agree for two runs to share a column."""
    env = run.info.environment
    return (
        run.info.suite_hash,
        *(env.cpu, env.num_cpus, env.gpu, env.torch, env.passnet, env.python, env.compiler),
        shared_settings(run.info.settings),
    )


def boards_of(runs: Sequence[MeasuredRun], suites: Sequence[Suite | None]) -> list[Board]:
    """Return the boards of runs, largest first; `suites` has the suite of each run."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, run in enumerate(runs):
        groups[_key(run)].append(number)
    boards = []
    for key, numbers in groups.items():
        first = runs[numbers[0]].info
        stem = file_stem(first.suite)
        stem = stem if all(board.stem != stem for board in boards) else file_stem(f"{stem} {key}")
        suite, own = suites[numbers[0]], [runs[number] for number in numbers]
        graphs = {trial.graph for run in own for trial in run.trials}
        lines = _lines(own, len(suite.graphs if suite else graphs))
        known = (first.suite, first.suite_hash, suite, first.environment, first.settings)
        boards.append(Board(stem, *known, lines))
    return sorted(boards, key=lambda board: -sum(len(line.trials) for line in board.lines))


def _lines(runs: Sequence[MeasuredRun], num_graphs: int) -> tuple[Line, ...]:
    """Return a line for each candidate of each run; equal names get the name of their run."""
    named = [
        (run, candidate, short_name(candidate))
        for run in runs
        for candidate in dict.fromkeys(trial.candidate for trial in run.trials)
    ]
    counts = Counter(short for _, _, short in named)
    names: set[str] = set()
    lines = []
    for run, candidate, short in named:
        name = short if counts[short] == 1 else f"{short} ({run.name})"
        while name in names:
            name += "'"
        names.add(name)
        kinds = {template.name: template.kind for template in run.info.candidates}
        trials = tuple(trial for trial in run.trials if trial.candidate == candidate)
        kind = kinds.get(candidate, "passes")
        lines.append(Line(name, kind, run, candidate, trials, num_graphs))
    return tuple(lines)


def short_name(candidate: str) -> str:
    """Return a candidate's name; of an absolute path only the last two parts.

    Examples:
        >>> short_name("/home/me/examples/passes@direct"), short_name("examples/passes")
        ('examples/passes@direct', 'examples/passes')
    """
    return "/".join(candidate.split("/")[-2:]) if candidate.startswith("/") else candidate


@dataclass(frozen=True)
class BoardScores:
    """The scores of every line for every choice of graphs that has any.

    `names` has the groups of each dimension, `graphs` the graphs of each choice.
    """

    names: dict[str, list[str]]
    graphs: dict[Choice, frozenset[str]]
    scores: dict[Choice, LineScores]

    @property
    def whole(self) -> LineScores:
        """The scores on all graphs."""
        return self.scores[(None,) * len(DIMENSIONS)]


def board_scores(board: Board) -> BoardScores:
    """Return the scores of a board."""
    groups = {by: graph_groups(board.suite, by) if board.suite else {} for by in DIMENSIONS}
    graphs = {trial.graph for line in board.lines for trial in line.trials}
    names = {
        by: group_order({groups[by].get(graph, "unknown") for graph in graphs} - {"unknown"})
        for by in DIMENSIONS
    }
    choices: dict[Choice, frozenset[str]] = {}
    for choice in product(*([None, *names[by]] for by in DIMENSIONS)):
        limits = [(groups[by], name) for by, name in zip(DIMENSIONS, choice, strict=True) if name]
        fitting = (g for g in graphs if all(group.get(g) == name for group, name in limits))
        if subset := frozenset(fitting):
            choices[choice] = subset
    by_subset: dict[frozenset[str], LineScores] = {}
    for subset in set(choices.values()):
        by_subset[subset] = {}
        for line in board.lines:
            trials = [trial for trial in line.trials if trial.graph in subset]
            by_subset[subset][line.name] = scores_of(trials).get(line.candidate)
    scores = {choice: by_subset[subset] for choice, subset in choices.items()}
    return BoardScores(names, choices, scores)
