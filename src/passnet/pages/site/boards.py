"""Boards: runs that were measured on one suite with one hardware, and so may share a column."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from passnet.bench.environment import Environment
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite
from passnet.judge.trial import Trial
from passnet.pages.site.measured import MeasuredRun, Standing
from passnet.pages.site.text import file_stem


@dataclass(frozen=True)
class Line:
    """A candidate of a run on a board, under a name that no other line there has."""

    name: str
    kind: str
    run: MeasuredRun
    candidate: str
    trials: tuple[Trial, ...]

    @property
    def standing(self) -> Standing:
        """What its numbers rest on."""
        return self.run.standing


@dataclass(frozen=True)
class Board:
    """Lines that may be compared: one suite, one hardware, one judge.

    `stem` names its pages. `suite` is None where its graphs are not known here.
    """

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


def hardware_text(environment: Environment, settings: RunSettings) -> str:
    """Return the hardware of a run in words.

    Examples:
        >>> env = Environment("3.11", "2.13", "0.1.0", "Linux", "AMD EPYC", 2, 4096, "g++", 0.0)
        >>> hardware_text(env, RunSettings())
        'AMD EPYC, 2 cores, 1 thread'
    """
    threads = f"{settings.num_threads} thread{'s' * (settings.num_threads > 1)}"
    if settings.judge.device != "cpu":
        gpu = environment.gpu
        name = gpu.name if gpu is not None and gpu.name else settings.judge.device
        return f"{name}, host {environment.cpu}, {threads}"
    cores = f"{environment.num_cpus} core{'s' * (environment.num_cpus > 1)}"
    return f"{environment.cpu}, {cores}, {threads}"


def _key(run: MeasuredRun) -> tuple[object, ...]:
    """Return the facts that must agree for two runs to share a column."""
    env, settings = run.info.environment, run.info.settings
    judge = settings.judge
    return (
        run.info.suite_hash,
        *(env.cpu, env.num_cpus, env.gpu, env.torch, env.passnet, env.python, env.compiler),
        *(judge.device, judge.rules, judge.strides, settings.num_threads, settings.held_out),
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
        boards.append(
            Board(
                stem,
                first.suite,
                first.suite_hash,
                suites[numbers[0]],
                first.environment,
                first.settings,
                _lines([runs[number] for number in numbers]),
            )
        )
    return sorted(boards, key=lambda board: -sum(len(line.trials) for line in board.lines))


def _lines(runs: Sequence[MeasuredRun]) -> tuple[Line, ...]:
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
        template = run.template(candidate)
        trials = tuple(trial for trial in run.trials if trial.candidate == candidate)
        lines.append(Line(name, template.kind if template else "passes", run, candidate, trials))
    return tuple(lines)


def short_name(candidate: str) -> str:
    """Return a candidate's name; of an absolute path only the last two parts.

    Examples:
        >>> short_name("/home/me/examples/passes@direct"), short_name("examples/passes")
        ('examples/passes@direct', 'examples/passes')
    """
    return "/".join(candidate.split("/")[-2:]) if candidate.startswith("/") else candidate
