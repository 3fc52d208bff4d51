"""Benchmarks of several nets, each in a process of its own, with a record of each in a file."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch.utils._pytree import tree_leaves

from passnet.pages.tables.tables import Table, print_table

RECORDS = "records.jsonl"


@dataclass(frozen=True)
class Run:
    """A benchmark: its module, its nets, the tables of its records, and nets by the name `drawn`.

    `python -m MODULE --one NET THREADS BUDGET` prints the record of a net as its last line.
    """

    module: str
    nets: tuple[str, ...]
    tables: Callable[[Sequence[dict[str, Any]]], Iterator[Table]]
    drawn: tuple[str, ...] = ()


def main(run: Run, says: str) -> None:
    """Measure what has no record yet, and print the tables of all there are."""
    parser = argparse.ArgumentParser(description=" ".join(says.split("\n\n")[0].split()))
    parser.add_argument("folder", type=Path)
    choices = (*run.nets, *run.drawn, "drawn")
    parser.add_argument("--net", action="append", choices=choices, metavar="NET")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if not options.table:
        asked = options.net or run.nets
        names = [name for one in asked for name in (run.drawn if one == "drawn" else (one,))]
        _measure(run, options.folder, names, options.threads, options.budget)
    for table in run.tables(records_of(options.folder)):
        print_table(Console(width=200), table)


def _measure(run: Run, folder: Path, names: Sequence[str], threads: int, budget: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = {(record["net"], record["threads"]) for record in records_of(folder)}
    for name in names:
        if (name, threads) in done:
            continue
        command = [sys.executable, "-m", run.module, "--one", name, str(threads), budget]
        log_file = folder / f"{name.replace('/', '-')}-{threads}.log"
        with log_file.open("w", encoding="utf-8") as log:
            ended = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=log, text=True, check=False
            )
        if ended.returncode:
            print(f"{name} failed; {log.name} says why", file=sys.stderr)
            continue
        with (folder / RECORDS).open("a", encoding="utf-8") as stream:
            stream.write(ended.stdout.splitlines()[-1] + "\n")
        print(f"{name} is done", flush=True)


def engines_of(fast: Any) -> list[str]:
    """Return the names of the backends of an optimised net, by all sizes."""
    names = set()
    for built in fast.built_backends:
        names |= {built.engine, *(other.engine for _, other in built.by_size if other)}
    return sorted(names)


def tensors_of(outputs: Any) -> list[torch.Tensor]:
    """Return the tensors among the outputs of a net."""
    return [x for x in tree_leaves(outputs) if isinstance(x, torch.Tensor)]


def records_of(folder: Path) -> list[dict[str, Any]]:
    """Return the records that a folder holds."""
    file = folder / RECORDS
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
