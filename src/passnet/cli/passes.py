"""`passnet pass`: check a pass folder against graphs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli.exits import fail
from passnet.cli.output import print_notes

if TYPE_CHECKING:
    from passnet.judge.match_check import GraphMatches
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.suite.suite import Suite


@click.group("pass")
def pass_group() -> None:
    """Check pass folders against graphs."""


@pass_group.command("check")
@opt.folder
@opt.suite
@opt.sandbox
@opt.json
def pass_check(folder: Path, suite: Suite, sandbox: Sandbox, as_json: bool) -> None:
    """Print where the passes in FOLDER match, and how near they come where they do not.

    FOLDER is a pass folder, or holds one for each task. Its code runs in processes of its own, in a
    sandbox; nothing is timed. With --json, prints a line of JSON for each pass and graph. Exits
    with 1 if a folder cannot be loaded or applied.
    """
    import msgspec

    from passnet.judge.desk.candidates import parse_candidate
    from passnet.judge.match_check import check_matches
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.settings import JudgeSettings

    entry = parse_candidate(str(folder), suite.tasks)
    print_notes(entry.notes, sandbox)
    failed = dict.fromkeys(entry.broken)
    with ParentPool(sandbox=sandbox) as parents:
        for task in suite.tasks:
            candidate = entry.for_task(task.name)
            if candidate is None or candidate.passes is None:
                continue
            for matches in check_matches(parents, task.graphs, candidate, JudgeSettings()):
                if matches.error is not None:
                    failed[task.name] = None
                for record, line in _lines(matches):
                    record = {"task": task.name, "graph": matches.graph, **record}
                    click.echo(msgspec.json.encode(record).decode() if as_json else line)
    if failed:
        fail(f"{folder}: cannot be loaded or applied for {', '.join(failed)}; see above")


def _lines(matches: GraphMatches) -> Iterator[tuple[dict[str, Any], str]]:
    """What is printed of a graph: a record and a line for each pass, or one for an error."""
    if matches.error is not None:
        yield {"error": matches.error}, f"{matches.graph}: {matches.error}"
    for report in matches.passes:
        line = f"{matches.graph}: {report.name} matches {report.num_matches} times"
        if report.miss:
            line = f"{matches.graph}: no match; {report.miss}"
        record = {"pass": report.name, "num_matches": report.num_matches, "miss": report.miss}
        yield record, line
