"""How often a win on a task is one in the net: tasks as they stand in nets, solved, put back there.

Run it with `python -m recipes.in_nets passbench-v1-small FOLDER`; it takes hours on a core and goes
on where it was stopped. Nothing else may run on that core.

1. `tasks.parquet`: sixty tasks of the suite that captured nets of at most 64 MiB hold, with the
   sizes and the dtype that they have there; passes of the suite's own graphs would fit few nets, as
   they are guarded by shapes;
2. `compiler`, `search` and `trained` write passes for these tasks, each in a folder of its name;
   `library` has, for each task, the shipped passes of ranges that its net holds;
3. `passnet bench apply` times all of them in the nets, in one run;
4. the counts of the study are printed; `--so-far` prints them of what is measured, which it also
   writes into the run.
"""

import argparse
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import geometric_mean

from passnet.bench.in_nets import (
    AGAIN,
    ALONE,
    PassesInNets,
    TaskInNet,
    find_places,
    keep_in_nets,
    ops_text,
    read_in_nets,
    record_of,
    starts_of,
)
from passnet.bench.run_record import run_folder
from passnet.core.records.serialise import make_folder, write_text
from passnet.core.terminal.progress import progress
from passnet.data.mine.cut import cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import PassnetError
from passnet.graph.canonical import op_sequence
from passnet.graph.spec import Graph
from passnet.judge.suite.suite import load_suite, make_suite, write_suite
from passnet.judge.task import NetSource, TaskGraph
from passnet.passes.files import Files
from passnet.passes.folder import LIST_FILE
from passnet.passes.library.entries import PassEntry, shipped_library
from passnet.passes.library.store import PassLibrary, range_key
from recipes.baselines import run_passnet

CAPTURES = Path(__file__).parents[1] / "captures"
LLM = Path(__file__).parents[1] / "training" / "llm"
MAX_MIB = 64.0
AUTHORS: Mapping[str, Sequence[str]] = {
    "compiler": ("--author", "compiler"),
    "search": ("--author", "search", "--turns", "5"),
    "trained": ("--author", "trained", "--checkpoint", str(LLM)),
}
WRITING = ("--call", "guarded", "--rules", "open", "--seconds", "0.1")
TASKS_FILE = "tasks.parquet"


def main(suite: str, folder: Path, names: Sequence[str], num_tasks: int) -> None:
    """Make what is missing of the study, and print its counts."""
    folder = folder.resolve()
    make_folder(folder)
    tasks = folder / TASKS_FILE
    if not tasks.exists():
        write_suite(tasks, make_suite(tasks.stem, tasks_in_nets(suite, CAPTURES, num_tasks)))
    for name in names:
        if name in AUTHORS:
            run_passnet(folder, "agent", "run", "--suite", str(tasks), "--out", name, "--resume",
                        *AUTHORS[name], *WRITING, log=folder / f"{name}.log")  # fmt: skip
        else:
            write_library_passes(tasks, folder / name)
    passes = [f"{name}/passes" for name in names]
    run_passnet(folder, "bench", "apply", *passes, "--suite", str(tasks), "--graphs", str(CAPTURES),
                "--resume", "--out", "run", "--seconds", "0.3",
                log=folder / "apply.log")  # fmt: skip
    print("\n".join(table_rows(read_in_nets(folder / "run"))))


def keep_so_far(folder: Path, names: Sequence[str]) -> None:
    """Write records of the places that are measured with every candidate, and print the counts."""
    run = folder / "run"
    trials, info = run_folder(run).records(), run_folder(run).read_info()
    places, _ = find_places(load_suite(str(folder / TASKS_FILE)).tasks, CAPTURES, 1, MAX_MIB)
    for name in names:
        own = [place for place in places if (folder / name / "passes" / place.task).is_dir()]
        needed = (name, ALONE, AGAIN)
        done = [
            record_of(place, trials, name)
            for place in own
            if all(
                (graph.name, each) in trials
                for graph in (place.on_task, place.in_net)
                for each in needed
            )
        ]
        keep_in_nets(PassesInNets(info.code_hashes[name], tuple(done), name), run)
    print("\n".join(table_rows(read_in_nets(run))))


def tasks_in_nets(suite: str, captures: Path, num_tasks: int) -> list[TaskGraph]:
    """Return tasks of a suite as they stand in a net each; which of them, a hash of names says."""
    places, _ = find_places(load_suite(suite).tasks, captures, 1, MAX_MIB, is_held=True)
    places.sort(key=lambda place: hashlib.sha256(place.task.encode()).digest())
    return [_as_task(place) for place in places[:num_tasks]]


def _as_task(place: TaskInNet) -> TaskGraph:
    source = NetSource(place.net, place.net.partition("/")[0], "", 0, 0)
    return TaskGraph(place.task, f"{place.task}--in-net", place.on_task.graph, source)


def write_library_passes(tasks: Path, out: Path) -> None:
    """Write a pass folder for each task whose net holds a range of a shipped pass, with all those
    passes.
    """
    places, _ = find_places(load_suite(str(tasks)).tasks, CAPTURES, 1, MAX_MIB)
    shipped = shipped_library()
    assert shipped is not None, "the tree has a library"
    library = PassLibrary(shipped)
    entries = {entry.range: entry for entry in library.entries()}
    with progress("looking for ranges of the library", len(places)) as step:
        for place in places:
            held = [entries[name] for name in sorted(_ranges(place.in_net.graph, entries))]
            if held:
                files = [library.files(entry) for entry in held]
                _write_together(files, out / "passes" / place.task)
            step(place.net)


def _ranges(net: Graph, entries: Mapping[str, PassEntry]) -> set[str]:
    """Return the ranges of entries that a net holds with their shapes and dtypes."""
    program = single_assignment(net.program)
    parent = parent_of(program, inferred_specs(Graph(program, net.tensors)))
    whole, found = op_sequence(program), set()
    for ops in {entry.ops for entry in entries.values()}:
        for start in starts_of(whole, ops) if ops_text(ops) in ops_text(whole) else ():
            with suppress(PassnetError):
                found.add(range_key(cut_range(parent, start, start + len(ops))).fingerprint)
    return found & entries.keys()


def _write_together(folders: Sequence[Files], out: Path) -> None:
    """Write several pass folders as one; their modules get numbers."""
    names: list[str] = []
    make_folder(out)
    for number, files in enumerate(folders):
        for path, text in files.items():
            if path == LIST_FILE:
                names.extend(f"N{number}_{name}" for name in json.loads(text))
            else:
                own = f"from pass_dir import N{number}_sources_0 as sources_0"
                text = text.replace("from pass_dir import sources_0", own)
                write_text(out / f"N{number}_{path}", text)
    write_text(out / LIST_FILE, json.dumps(names))


def table_rows(found: Sequence[PassesInNets]) -> Iterator[str]:
    """Return the lines of a page's table: a candidate, its tasks in nets, how many are faster than
    Inductor alone on the task, how many of these are in the net, and how many are slower there.

    Faster and slower in a net mean with the whole interval. The share that survives has its Wilson
    interval.
    """
    for own in found:
        places = [place for place in own.places if place.speedup and place.task_speedup]
        won = [place for place in places if place.is_won_on_task]
        kept = sum(place.is_won_in_net for place in won)
        lost = sum(place.high is not None and place.high < 1 for place in won)
        low, high = wilson(kept, len(won))
        means = [geometric_mean(values) if values else math.nan for values in (
            [place.task_speedup or 1.0 for place in places],
            [place.predicted for place in places if place.predicted],
            [place.speedup or 1.0 for place in places],
            [place.again or 1.0 for place in places],
        )]  # fmt: skip
        cells = (
            own.candidate, str(len(own.places)), str(len(places)), str(len(won)), str(kept),
            f"{100 * low:.0f} – {100 * high:.0f}", str(lost), *(f"{mean:.3f}" for mean in means),
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def wilson(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson, 1927); the whole range of none."""
    if not total:
        return 0.0, 1.0
    z, share = 1.96, count / total
    middle = share + z * z / (2 * total)
    width = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", choices=(*AUTHORS, "library"), default=[])
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--so-far", action="store_true")
    words = parser.parse_args()
    if words.so_far:
        keep_so_far(words.folder.resolve(), words.only or (*AUTHORS, "library"))
        raise SystemExit
    main(words.suite, words.folder, words.only or (*AUTHORS, "library"), words.tasks)
