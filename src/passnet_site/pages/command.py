"""`passnet report`: runs, attempts, studies and a dataset as a static site."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_json, say
from passnet.core.terminal.counts import counted

if TYPE_CHECKING:
    from passnet.judge.suite.suite import Suite


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `passnet report`."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1, required=False)

    out: Path
    """Write the site to this folder; a site in it is replaced, and files of others are kept."""

    title: str = "Leaderboard"
    """Give the site this headline."""

    suites: tuple[Suite, ...] = opt.shared("suites")

    leaderboard: Path | None = None
    """Show the entries of the leaderboard in this folder; see `passnet leaderboard`."""

    dataset: Path | None = None
    """Give the numbers of the dataset in this folder a page."""

    json: bool = opt.shared("json")


@opt.command("report")
def report(options: ReportOptions) -> None:
    """Write a static site of PATHS that opens from disk and from any web server.

    PATHS are folders of runs (`passnet bench run`), of runs of authors (`passnet agent run`) and of
    studies (with a study.json). The site has a leaderboard, and pages for tasks, trials, attempts
    and studies; nothing in it is loaded from elsewhere.
    """
    from passnet.core.terminal.progress import progress
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.stats import stats
    from passnet_site.pages.build import build_site, read_parts

    out, numbers = options.out, None
    if options.dataset is not None:
        with Dataset(options.dataset) as opened:
            numbers = stats(opened)
    parts = read_parts(options.paths, options.leaderboard, options.suites, numbers)
    total = len(parts.boards) + parts.num_tasks + len(parts.attempts)
    with progress("writing the site", total) as step:
        record = build_site(parts, out, options.title, step)
    if options.json:
        print_json(record)
    else:
        say(
            f"written to {out}: {counted(record.num_boards, 'board')}, "
            f"{counted(record.num_trials, 'trial')}, {counted(record.num_tasks, 'task')}, "
            f"{counted(record.num_attempts, 'attempt')}, "
            f"{counted(record.num_studies, 'study', 'studies')}, "
            f"{record.num_bytes / 2**20:.1f} MiB; open {out / 'index.html'}"
        )
