"""`passnet report`: runs, attempts, studies and a dataset as a static site."""

from __future__ import annotations

from pathlib import Path

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json


@click.command()
@click.argument("paths", nargs=-1, type=opt.PATH)
@opt.out("The folder of the site")
@opt.option("--title", "The headline of the site.", default="Leaderboard")
@opt.suites("--suite", "A suite that was measured and does not ship with passnet (repeatable).",
            "suites")  # fmt: skip
@opt.path("--leaderboard", "A leaderboard whose entries are shown, see `passnet leaderboard`.")
@opt.path("--dataset", "A dataset whose numbers get a page.")
@opt.json
def report(paths: tuple[Path, ...], out: Path, title: str, suites: tuple[str, ...],
           leaderboard: Path | None, dataset: Path | None, as_json: bool) -> None:  # fmt: skip
    """Write a static site of PATHS that opens from disk and from any web server.

    PATHS are folders of runs (`passnet bench run`), of runs of authors (`passnet agent run`) and of
    studies (with a study.json). The site has a leaderboard, and pages for tasks, trials, attempts
    and studies; nothing in it is loaded from elsewhere. A site that is in OUT already is replaced.
    """
    from passnet.core.terminal.progress import progress
    from passnet.data.dataset.query import Dataset
    from passnet.data.dataset.stats import stats
    from passnet.judge.suite.suite import load_suite
    from passnet.pages.site.build import build_site, read_parts

    numbers = None
    if dataset is not None:
        with Dataset(dataset) as opened:
            numbers = stats(opened)
    parts = read_parts(paths, leaderboard, [load_suite(name) for name in suites], numbers)
    total = len(parts.boards) + parts.num_tasks + len(parts.attempts)
    with progress("writing the site", total) as step:
        record = build_site(parts, out, title, step)
    if as_json:
        print_json(record)
    else:
        click.echo(
            f"written to {out}: {record.num_boards} boards, {record.num_trials} trials, "
            f"{record.num_tasks} tasks, {record.num_attempts} attempts, {record.num_studies} "
            f"studies, {record.num_bytes / 2**20:.1f} MiB; open {out / 'index.html'}"
        )
