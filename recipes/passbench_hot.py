"""PassBench v1 hot: tasks that take at least 5 % of the time of a net under `torch.compile`.

Run it with `python -m recipes.passbench_hot captures FOLDER [--jobs N]`; it takes some hours of a
core and goes on where it was stopped. FOLDER gets the suite and the shares of its tasks, and in
`work` what they are made of:

1. `graphs`: a sample of captured nets of at most 64 MiB, each domain in its share;
2. `data`: their fusible and classical subgraphs, in all dtypes;
3. `times.jsonl`: the time of each op in eager PyTorch, and with it the share of each op sequence in
   each net;
4. `rows`: the op sequences with the largest shares, of each class of ops as many as `ROOM` says;
5. `admitted.parquet`: those whose subgraphs are admitted (docs/suites.md);
6. `shares`: the time of each task and of up to two of its nets, both compiled by Inductor. Tasks
   below 5 % in all of them are left out, and those that the training data knows.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from passnet.bench.in_nets import find_places, ops_text, row_mib, starts_of
from passnet.bench.profiling.eager_ops import op_times
from passnet.bench.shares import SHARES_FILE, shares_in_run, time_in_nets
from passnet.core.hardware import num_processors
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import encode, has_lines, make_folder, read_lines, write_json
from passnet.core.terminal.progress import late_progress, progress
from passnet.data.capture.store import GRAPHS, GraphRow, read_set, write_set
from passnet.data.dataset.build import BuildSettings, build_dataset
from passnet.data.dataset.store import (
    MANIFEST_FILE,
    SUBGRAPHS,
    read_dataset,
    write_dataset,
)
from passnet.errors import MeasureError, PassnetError, boundary
from passnet.graph.canonical import fingerprints
from passnet.graph.fx.build import build
from passnet.graph.spec import retarget
from passnet.graph.text.files import graph_from_row
from passnet.graph.values.cost import torch_arguments
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import load_suite, make_suite, write_suite
from passnet.judge.task import Task
from passnet_audit.suites.assembly import AssemblyPlan, AssemblyWork, assemble
from passnet_audit.suites.selection import SelectionPlan
from passnet_loops.data.build import read_training
from recipes.passbench_v1 import balanced_sample, describe, domain_shares

SUITE, VERSION = "passbench-v1-hot", "1.0"
TRAINING = Path(__file__).parents[1] / "training"
KIND = "fusible"
"""Classical subgraphs count as this kind too, as tasks here are chosen by their time."""
NUM_TASKS = 60
NUM_NETS, MAX_OPS, MAX_MIB = 160, 400, 64.0
LEAST_SHARE = 0.05
LONGEST = 16
"""The most ops of a task; a longer one is most of its net."""

CLASSES = {
    "attention": ("scaled_dot_product_attention", "multi_head_attention_forward"),
    "convolution": ("conv1d", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose1d"),
    "product": ("linear", "matmul", "bmm", "baddbmm", "addmm", "einsum"),
    "embedding": ("embedding", "embedding_bag", "gather", "index_select"),
    "recurrent": ("lstm", "gru", "rnn_tanh"),
}
ROOM = {
    "attention": 12, "convolution": 28, "product": 28, "embedding": 6, "recurrent": 4, "other": 22
}  # fmt: skip
"""Classes of tasks, by the first of these ops that they hold; and the most tasks of each."""

PLAN = AssemblyPlan(
    SelectionPlan(KIND, NUM_TASKS, max_graphs=6, max_ops=LONGEST, max_mib=32.0, levels_a_bucket=1),
    max_gflops=2.0,
)


@dataclass(frozen=True, slots=True)
class NetTimes:
    """Milliseconds of each op of a captured graph, in eager PyTorch."""

    full: str
    ms: tuple[float, ...]


def main(captures: Path, folder: Path, num_workers: int) -> None:
    """Make the suite."""
    work, run = folder / "work", RunPlan(num_workers=num_workers, resume=True)
    graphs = _sampled(captures, work / "graphs")
    if not (work / "data" / MANIFEST_FILE).exists():
        settings = BuildSettings(kinds=("classical", "fusible"))
        with late_progress() as start:
            build_dataset([work / "graphs"], work / "data", settings, run, announce=start)
    times = timed(graphs, work / "times.jsonl")
    manifest, files = read_dataset(work / "data")
    rows = [row for file in files for row in SUBGRAPHS.read(file)]
    chosen = set(hot_sequences({row.op_sequence for row in rows if not row.variant}, graphs, times))
    if not (work / "rows" / MANIFEST_FILE).exists():
        make_folder(work / "rows")
        kept = [replace(row, kinds=(KIND,)) for row in rows if row.op_sequence in chosen]
        write_dataset(work / "rows", kept, manifest.versions)
    place = AssemblyWork(
        work / "admitted.parquet", work / "admitted", run, partial(progress, "admitting subgraphs")
    )
    describe("admitted", assemble(work / "rows", PLAN, place).tasks)
    weigh(folder)


def _sampled(captures: Path, out: Path) -> list[GraphRow]:
    """Return the sample of captured graphs, which `out` gets."""
    if not (out / MANIFEST_FILE).exists():
        manifest, files = read_set(captures)
        corpus = [row for file in files for row in GRAPHS.read(file)]
        fitting = [
            row for row in corpus if row_mib(row) <= MAX_MIB and len(row.op_sequence) > LONGEST
        ]
        make_folder(out)
        sample = balanced_sample(fitting, domain_shares(corpus), NUM_NETS, MAX_OPS)
        write_set(out, sample, manifest.versions)
    return [row for file in read_set(out)[1] for row in GRAPHS.read(file)]


def timed(graphs: Iterable[GraphRow], path: Path) -> dict[str, tuple[float, ...]]:
    """Return the times of the ops of graphs, from the file `path` or measured now and added to it.

    A graph that eager PyTorch cannot run on drawn inputs has no times, and the reason is printed.
    """
    stored = read_lines(path, NetTimes, skip_torn=True) if has_lines(path) else ()
    found = {each.full: each.ms for each in stored}
    missing = [row for row in graphs if row.full not in found]
    with path.open("ab") as out, progress("timing ops", len(missing)) as step:
        for row in missing:
            ms: tuple[float, ...] = ()
            try:  # an index may be out of range, or an op refuse the values
                with boundary(MeasureError, "building the graph"):
                    graph = retarget(graph_from_row(row.program, row.tensors, row.full[:16]), "cpu")
                    module, args = build(graph.program, "net"), torch_arguments(graph, "fresh", 0)
                ms = tuple(op.ms for op in op_times(module, args))
            except PassnetError as cause:
                print(f"{row.sources[0].entry}: not timed: {cause}", file=sys.stderr)
            out.write(encode(NetTimes(row.full, ms)) + b"\n")
            out.flush()
            found[row.full] = ms
            step(row.sources[0].entry)
    return found


def hot_sequences(
    sequences: Collection[tuple[str, ...]],
    graphs: Iterable[GraphRow],
    times: Mapping[str, Sequence[float]],
) -> list[tuple[str, ...]]:
    """Return op sequences that take at least `LEAST_SHARE` of a net, as `ROOM` allows.

    Those that are hot in most nets come first, and of these the ones with the largest share. One
    that holds another, or is held by it, is left out if the other came before.
    """
    hot: dict[tuple[str, ...], list[float]] = defaultdict(list)
    fitting = [ops for ops in sequences if len(ops) <= LONGEST]
    for row in graphs:
        ms = times[row.full]
        if len(ms) != len(row.op_sequence):
            continue
        text, total = ops_text(row.op_sequence), sum(ms)
        for ops in fitting:
            if ops_text(ops) in text:
                own = sum(sum(ms[at : at + len(ops)]) for at in starts_of(row.op_sequence, ops))
                if own >= LEAST_SHARE * total:
                    hot[ops].append(own / total)
    ranked = sorted(hot, key=lambda ops: (-len(hot[ops]), -max(hot[ops]), ops))
    room, chosen = dict(ROOM), []
    for ops in ranked:
        name = class_of(ops)
        is_new = all(
            ops_text(ops) not in ops_text(o) and ops_text(o) not in ops_text(ops) for o in chosen
        )
        if room[name] and is_new and (len(ops) > 1 or name in ("attention", "embedding")):
            room[name] -= 1
            chosen.append(ops)
    return chosen


def class_of(ops: Sequence[str]) -> str:
    """Return the class of a task."""
    words = {op.rsplit(".", 1)[-1] for op in ops}
    return next((name for name, own in CLASSES.items() if words & set(own)), "other")


def weigh(folder: Path) -> None:
    """Measure the shares of the admitted tasks, and write those of at least `LEAST_SHARE`."""
    work = folder / "work"
    admitted = load_suite(str(work / "admitted.parquet"))
    places, _ = find_places(admitted.tasks, work / "graphs", 2, MAX_MIB, is_held=True)
    settings = RunSettings(JudgeSettings(timing=TimingPlan(0.3)), sandbox=find_sandbox("auto").name)
    with progress("timing in nets", 2 * len(places)) as step:
        plan = RunPlan(resume=True, progress=step)
        time_in_nets(places, work / "shares", settings, plan)
    found = shares_in_run(admitted, places, work / "shares")
    largest: dict[str, float] = defaultdict(float)
    for each in found.nets:
        largest[each.task] = max(largest[each.task], each.share)
    known = _known_to(TRAINING)
    tasks = [
        task
        for task in admitted.tasks
        if largest[task.name] >= LEAST_SHARE and not known & _keys(task)
    ]
    suite = make_suite(SUITE, [graph for task in tasks for graph in task.graphs])
    write_suite(folder / f"{SUITE}.parquet", replace(suite, version=VERSION))
    names = {task.name for task in tasks}
    places = [place for place in places if place.task in names]
    write_json(folder / f"{SUITE}.{SHARES_FILE}", shares_in_run(suite, places, work / "shares"))
    print(f"{SUITE}: {len(tasks)} of {len(admitted.tasks)} tasks, {suite.content_hash}")


def _known_to(training: Path) -> set[object]:
    """Return the op sequences and the structures of training data, as no benchmark shares one."""
    rows = read_training(training)[1]
    return {row.op_sequence for row in rows} | {row.structure for row in rows}


def _keys(task: Task) -> set[object]:
    return {task.ops, *(fingerprints(graph.graph).structure for graph in task.graphs)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captures", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=num_processors())
    words = parser.parse_args()
    main(words.captures, words.folder, words.jobs)
