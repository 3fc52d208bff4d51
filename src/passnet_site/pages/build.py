"""A site of runs, runs of authors, entries of a leaderboard, studies and a dataset."""

import shutil
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt, read_attempts
from passnet.bench.profiling.run import RECORDS_FILE
from passnet.bench.published import PUBLISHED_FILE, PublishedRun, read_published
from passnet.core.records.folders import atomic_folder, restore_replaced
from passnet.core.records.serialise import SCHEMA_VERSION, has_lines, read_json, write_json
from passnet.data.dataset.stats import Stats
from passnet.errors import InputError, check_exists
from passnet.judge.suite.suite import Suite
from passnet.pages.figures.profile_page import profile_study
from passnet.pages.figures.study_page import STUDY_FILE, Study, read_study
from passnet.train.rewards.samples import SAMPLES_FILE
from passnet_site.pages.attempt_pages import write_attempts
from passnet_site.pages.board_pages import write_board, write_index, write_trials
from passnet_site.pages.boards import Board, board_scores, boards_of
from passnet_site.pages.measured import KnownSuites, MeasuredRun, is_run, read_entries, read_run
from passnet_site.pages.site_folder import SiteFolder
from passnet_site.pages.study_pages import write_dataset, write_studies
from passnet_site.pages.task_pages import write_tasks
from passnet_site.pages.training_page import training_study

SITE_FILE = "site.json"
"""The file that marks a folder as a site, which the next site may replace."""


@dataclass(frozen=True)
class SiteParts:
    """The parts of a site."""

    runs: tuple[MeasuredRun, ...] = ()
    boards: tuple[Board, ...] = ()
    published: tuple[PublishedRun, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    studies: tuple[Study, ...] = ()
    stats: Stats | None = None

    @property
    def num_tasks(self) -> int:
        """The number of pages of tasks."""
        return len({(board.suite_hash, task) for board in self.boards for task in board.tasks})


@dataclass(frozen=True)
class SiteRecord:
    """The contents of a site, in `site.json`."""

    title: str
    num_boards: int
    num_trials: int
    num_tasks: int
    num_attempts: int
    num_studies: int
    num_files: int
    num_bytes: int
    files: tuple[str, ...] = ()
    """The files that passnet wrote, relative to the site; all others are kept by the next site."""

    schema_version: int = SCHEMA_VERSION


def read_parts(
    paths: Sequence[Path],
    leaderboard: Path | None,
    suites: Sequence[Suite],
    stats: Stats | None,
) -> SiteParts:
    """Read the parts of a site; nothing is written into the folders.

    Args:
        paths: folders of runs, published scores, runs of authors, trainings, profiles and studies.
        leaderboard: folder of a leaderboard, whose entries are shown.
        suites: suites that do not ship with passnet.
        stats: numbers of a dataset.

    Raises:
        InputError: a folder is none of these, or cannot be read.
    """
    known = KnownSuites(tuple(suites))
    runs = [] if leaderboard is None else read_entries(leaderboard, known)
    attempts: list[Attempt] = []
    studies: list[Study] = []
    published: list[PublishedRun] = []
    for path in dict.fromkeys(path.resolve() for path in paths):
        if has_lines(path / SAMPLES_FILE):
            studies.append(training_study(path))
        elif has_lines(path / RECORDS_FILE):
            studies.append(profile_study(path))
        elif (path / STUDY_FILE).is_file():
            studies.append(read_study(path))
        elif (path / PUBLISHED_FILE).is_file():
            published.append(read_published(path))
        elif is_run(path):
            runs.append(read_run(path, known))
        elif has_lines(path / ATTEMPTS_FILE):
            attempts += read_attempts([path])
        else:
            check_exists(path)
            raise InputError(
                f"{path}: no run, no run of an author, no training and no study; give a folder "
                f"with trials.jsonl and run.json, {PUBLISHED_FILE}, {ATTEMPTS_FILE}, "
                f"{SAMPLES_FILE}, {RECORDS_FILE} or {STUDY_FILE}"
            )
    boards = boards_of(runs, [known.of_hash(run.info.suite_hash) for run in runs])
    parts = SiteParts(
        tuple(runs), tuple(boards), tuple(published), tuple(attempts), tuple(studies), stats
    )
    if not (runs or published or attempts or studies or stats is not None):
        raise InputError("there is nothing to show; give the folder of a run")
    return parts


def build_site(
    parts: SiteParts, out: Path, title: str, step: Callable[[str], None] = lambda name: None
) -> SiteRecord:
    """Write a site, all of it or nothing, in place of an earlier site.

    Files of the folder that the earlier site did not write are kept.

    Args:
        parts: parts of the site.
        out: folder of the site.
        title: headline of the site.
        step: called with the name of every written board, task and attempt.

    Raises:
        InputError: `out` holds something that is no site, or a foreign file that the new site would
            overwrite, or cannot be written.
    """
    out = out.resolve()  # a link stays, and the folder that it leads to is replaced
    restore_replaced(out)
    is_site = (out / SITE_FILE).is_file()
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]) and not is_site:
        raise InputError(f"{out}: is there already, and no site; choose another --out")
    with atomic_folder(out, replaces=is_site) as folder:
        record = _write(parts, folder, title, step)
        if is_site:
            _keep_others(out, folder)
    return record


def _keep_others(site: Path, fresh: Path) -> None:
    """Copy what a site did not write itself, such as `.git` and `CNAME`, into a fresh one.

    Raises:
        InputError: the fresh site has another file of the same name.
    """
    written = {Path(name) for name in read_json(site / SITE_FILE, SiteRecord).files}
    folders = {parent for name in written for parent in name.parents}
    for path in _others(site, written, folders):
        target = fresh / path.relative_to(site)
        if target.exists():
            raise InputError(
                f"{path}: was not written by `passnet report` of this version, and a file of the "
                "new site has its name; remove it, or choose another --out"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, target, symlinks=True)
        else:
            shutil.copy2(path, target, follow_symlinks=False)


def _others(site: Path, written: Set[Path], folders: Set[Path]) -> Iterator[Path]:
    """Yield the foreign files of a site; a folder with no other files counts as one."""
    pending = [site]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            name = path.relative_to(site)
            if name in folders and path.is_dir() and not path.is_symlink():
                pending.append(path)
            elif name not in written:
                yield path


def _write(parts: SiteParts, folder: Path, title: str, step: Callable[[str], None]) -> SiteRecord:
    sections = [("Leaderboard", "index.html")]
    sections += [("Tasks", "tasks/index.html")] * bool(parts.boards)
    sections += [("Attempts", "attempts/index.html")] * bool(parts.attempts)
    sections += [("Studies", "studies/index.html")] * bool(parts.studies)
    sections += [("Dataset", "dataset.html")] * (parts.stats is not None)
    sections += [("How to read", "about.html")]
    site = SiteFolder(folder, title, sections)
    site.write_assets()
    scores = []
    for board in parts.boards:
        scores.append(board_scores(board))
        write_board(site, board, scores[-1])
        write_trials(site, board)
        step(board.suite_name)
    write_index(site, parts.boards, scores, parts.published)
    for name in write_tasks(site, parts.boards) if parts.boards else ():
        step(name)
    for name in write_attempts(site, parts.attempts) if parts.attempts else ():
        step(name)
    if parts.studies:
        write_studies(site, parts.studies)
    if parts.stats is not None:
        write_dataset(site, parts.stats)
    site.write_page("about.html", "about")
    files = [path for path in folder.rglob("*") if path.is_file()]
    num_trials = sum(len(line.trials) for board in parts.boards for line in board.lines)
    record = SiteRecord(
        title,
        len(parts.boards),
        num_trials,
        parts.num_tasks,
        len(parts.attempts),
        len(parts.studies),
        num_files=len(files) + 1,
        num_bytes=sum(path.stat().st_size for path in files),
        files=(*sorted(path.relative_to(folder).as_posix() for path in files), SITE_FILE),
    )
    write_json(folder / SITE_FILE, record)
    return record
