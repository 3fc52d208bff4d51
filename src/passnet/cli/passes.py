"""`passnet pass`: check a pass folder against graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.exits import fail
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_json, print_notes, say
from passnet.core.terminal.counts import times
from passnet.errors import InputError, WorkerError, check_exists, names_exhaustion

if TYPE_CHECKING:
    from passnet.judge.match_check import GraphMatches
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.suite.suite import Suite


@click.group("pass", cls=ExtensibleGroup)
def pass_group() -> None:
    """Check pass folders against graphs."""


@dataclass(frozen=True, kw_only=True)
class PassCheckOptions:
    """Options of `passnet pass check`."""

    folder: Path = opt.argument()

    suite: Suite = opt.suite(unless="rules")

    rules: Literal["open", "strict"] | None = None
    """Only print the findings in the code of FOLDER under these rules; none of it runs."""

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")


@opt.command("check", pass_group)
def pass_check(options: PassCheckOptions) -> None:
    """Print the matches of the passes in FOLDER, and near misses where there are none.

    FOLDER is a pass folder, or holds one for each task. Its code runs in a sandbox; nothing is
    timed. With --json, prints a line of JSON for each pass and graph. Exits with 1 if a folder
    cannot be loaded or applied. With --rules, prints what the judge finds in its code instead, with
    --json in one line for each pass folder.
    """
    if options.rules is not None:
        _print_findings(options.folder, options.rules, options.json)
        return
    from passnet.judge.desk.candidates import BASELINES, parse_candidate
    from passnet.judge.match_check import check_matches
    from passnet.judge.processes.parent_pool import ParentPool
    from passnet.judge.protocol.device import UNUSED
    from passnet.judge.settings import JudgeSettings

    suite, word = options.suite, str(options.folder)
    if word.split("@")[0] in BASELINES and not options.folder.exists():
        raise InputError(f"{word}: a baseline, which has no passes; give a pass folder")
    check_exists(Path(word.split("@")[0]))
    entry = parse_candidate(word, suite.tasks)
    print_notes(entry.notes, options.sandbox)
    failed = dict.fromkeys(entry.broken)
    device = UNUSED if len(suite.tasks) == 1 else "cpu"  # each task's worker imports what it needs
    errors: set[str] = set()
    num_graphs = num_matching = 0
    with ParentPool(sandbox=options.sandbox, device=device) as parents:
        for task in suite.tasks:
            candidate = entry.for_task(task.name)
            if candidate is None or candidate.passes is None:
                continue
            for matches in check_matches(parents, task.graphs, candidate, JudgeSettings()):
                num_graphs += 1
                num_matching += any(report.num_matches for report in matches.passes)
                if matches.error is not None:
                    if names_exhaustion(matches.error):
                        text = "not checked, as this machine lacks something"
                        raise WorkerError(f"{matches.graph}: {text}: {matches.error}")
                    failed[task.name] = None
                    if matches.error in errors and not options.json:
                        continue
                    errors.add(matches.error)
                for record, line in _lines(matches):
                    record = {"task": task.name, "graph": matches.graph, **record}
                    if options.json:
                        print_json(record, indent=-1)
                    else:
                        say(line)
    if failed:
        fail(f"{options.folder}: cannot be loaded or applied for {', '.join(failed)}; see above")
    if not options.json and num_graphs > 1:
        say(f"passes match on {num_matching} of {num_graphs} graphs")


def _lines(matches: GraphMatches) -> Iterator[tuple[dict[str, Any], str]]:
    """Return a record and a line for each pass on a graph, or one for an error."""
    if matches.error is not None:
        yield {"error": matches.error}, f"{matches.graph}: {matches.error}"
    for report in matches.passes:
        line = f"{matches.graph}: {report.name} matches {times(report.num_matches)}"
        if report.miss:
            line = f"{matches.graph}: no match; {report.miss}"
        record = {"pass": report.name, "num_matches": report.num_matches, "miss": report.miss}
        yield record, line


def _print_findings(folder: Path, rules: Literal["open", "strict"], is_json: bool) -> None:
    """Print the findings in the code of pass folders; exit with 1 if one cannot be inspected."""
    import msgspec

    from passnet.core.jobs.process import JobRunner
    from passnet.judge.inspection.inspected_folders import inspect_limited
    from passnet.passes.folder import LIST_FILE

    listed = sorted(folder.glob(f"*/{LIST_FILE}"))
    folders = [path.parent for path in listed] if not (folder / LIST_FILE).exists() else [folder]
    failed = []
    with JobRunner() as runner:
        for path in folders:
            inspection = inspect_limited(path, rules, runner)
            failed += [inspection.failure] if inspection.failure else []
            if is_json:
                record = {"folder": str(path), "rules": rules, **msgspec.to_builtins(inspection)}
                print_json(record, indent=-1)
                continue
            for found in inspection.findings:
                text = f"{found.place}: {found.weight} {found.name}: {found.evidence}"
                say(text if path == folder else f"{path.name}/{text}")
            if not inspection.findings and not inspection.failure:
                say(f"{path}: no findings under {rules} rules")
    if failed or not folders:
        fail("; ".join(failed) or f"{folder} is no pass folder, and holds none")
