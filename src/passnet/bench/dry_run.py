"""A dry run of a pass folder: where its passes match, and how near they come where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import msgspec

from passnet.bench.candidates import parse_candidate
from passnet.errors import PassError
from passnet.graph.build import build
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from passnet.passes.rewrite import apply_passes
from passnet.suite.suite import Suite


def dry_run(folder: Path, suite: Suite, as_json: bool = False) -> Iterator[str]:
    """A line for every pass on every graph, as text or as JSON.

    This runs the code of the pass folder in this process.

    Raises:
        PassFolderError: the folder cannot be used at all.
    """
    entry = parse_candidate(str(folder), suite.tasks)
    for task in suite.tasks:
        candidate = entry.for_task(task.name)
        if candidate is None or candidate.passes is None:
            continue
        try:
            passes = load_passes(inspect_folder(Path(candidate.passes)))
        except PassError as cause:
            yield _line(as_json, {"task": task.name, "error": str(cause)}, f"{task.name}: {cause}")
            continue
        for item in task.graphs:
            reports, _ = apply_passes(build(item.graph.program), passes)
            for report in reports:
                record = {"task": task.name, "graph": item.name, "pass": report.name,
                          "num_matches": report.num_matches,
                          "miss": asdict(report.miss) if report.miss else None}  # fmt: skip
                text = f"{item.name}: {report.name} matches {report.num_matches} times"
                if report.miss:
                    text = f"{item.name}: no match; {report.miss.sentence()}"
                yield _line(as_json, record, text)


def _line(as_json: bool, record: Mapping[str, object], text: str) -> str:
    return msgspec.json.encode(record).decode() if as_json else text
