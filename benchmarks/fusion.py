"""The fusion plan of one lowering against the kernels of every prefix: how often equal, how fast.

Run it as `python -m benchmarks.fusion SUITE`, and add `cuda` for the plan of a GPU, `captures` for
captured graphs instead of a suite, or `large` for graphs of about 500 ops, of which a tenth of the
prefixes stands for all. Both sides stop before code is made, so that the ratio is of lowerings
alone; what running every prefix adds, `executed` shows on the smallest graphs.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console

from benchmarks.cutting import CAPTURES, graph_of
from benchmarks.prefix_counts import prefix_kernels, prefix_launches, prefixes
from passnet.data.capture.store import GRAPHS, read_set
from passnet.data.mine.subgraphs import fusible_ranges
from passnet.errors import PassnetError
from passnet.graph.spec import Graph
from passnet.inductor.fusion import fusion_plan
from passnet.inductor.schedule import TargetDevice
from passnet.judge.suite.suite import load_suite
from passnet.pages.tables.tables import Table, print_table

SMALL = (
    ("torch_geometric/rgcn", 2), ("monai/basic-unet-plus-plus-3d", 3),
    ("transformers/ViltForImageAndTextRetrieval", 3),
    ("transformers/OneFormerForUniversalSegmentation", 6), ("monai/regunet-3d", 0),
    ("neuralforecast/TFT", 1), ("torch_geometric/EdgeCNN", 0), ("torchvision/vgg11_bn", 0),
)  # fmt: skip
"""Captured graphs of 9 to 49 ops, as net and number of the graph."""

LARGE = (("timm/resnet152", 0), ("timm/vit_large_patch16_224", 0))
"""Captured graphs of about 500 ops."""

SAMPLE_STEP = 10
"""Of a large graph every tenth prefix is lowered, and counts for ten."""

MAX_EXECUTED_OPS: dict[TargetDevice, int] = {"cpu": 4, "cuda": 16}
"""Largest graph of a suite whose prefixes are compiled and run."""


def captured(nets: Iterable[tuple[str, int]]) -> Iterator[tuple[str, Graph]]:
    """Graphs that were captured in evaluation, by net and number."""
    missing = set(nets)
    _, paths = read_set(CAPTURES)
    for path in paths:
        for row in GRAPHS.read(path):
            for source in row.sources:
                net = (source.entry, source.number)
                if net in missing and source.part == "forward" and not source.train:
                    missing.remove(net)
                    yield source.entry, graph_of(row)


def fusion_table(graphs: Iterable[tuple[str, str, Graph]], device: TargetDevice) -> Table:
    """A line a group: graphs, prefixes, how many counts and ranges are equal, and the times.

    Args:
        graphs: group, name and graph.
        device: what is planned for.
    """
    heads = ("group", "graphs", "prefixes", "equal counts", "graphs with equal counts",
             "graphs with equal ranges", "one plan s", "prefixes s", "ratio")  # fmt: skip
    table = Table(
        f"fusion plan of one lowering for {device}, and lowering every prefix",
        heads,
        note="Counts: K(P) of a prefix of P ops. Ranges: the fusible ranges that follow. "
        "Seconds are of the processor.",
    )
    total: Counter[str] = Counter()
    counters: dict[str, Counter[str]] = {}
    for group, name, graph in graphs:
        counts = counters.setdefault(group, Counter())
        try:
            _compare(graph, device, counts)
        except PassnetError as cause:
            print(f"{name}: {cause}", file=sys.stderr)
            counts["failed"] += 1
    for group, counts in counters.items():
        total.update(counts)
        table.rows.append(_row(group, counts))
    table.rows.append(_row("all", total))
    return table


def _compare(graph: Graph, device: TargetDevice, counts: Counter[str]) -> None:
    fusion_plan(graph, device=device)  # what is loaded on first use is not to be timed
    start = time.process_time()
    planned = fusion_plan(graph, device=device).num_kernels()
    middle = time.process_time()
    lowered = prefix_kernels(graph, device=device)
    end = time.process_time()
    pairs = [pair for pair in zip(planned, lowered, strict=True) if pair[1] is not None]
    equal = sum(first == second for first, second in pairs)
    ranges = [fusible_ranges([pair[side] for pair in pairs]) for side in (0, 1)]
    counts.update(
        graphs=1,
        prefixes=len(pairs),
        counts=equal,
        whole=int(equal == len(pairs)),
        ranges=int(ranges[0] == ranges[1]),
        plan_us=int(1e6 * (middle - start)),
        prefix_us=int(1e6 * (end - middle)),
    )


def _row(name: str, counts: Counter[str]) -> tuple[str, ...]:
    ratio = counts["prefix_us"] / counts["plan_us"] if counts["plan_us"] else 0.0
    return (
        name,
        str(counts["graphs"]),
        str(counts["prefixes"]),
        str(counts["counts"]),
        str(counts["whole"]),
        str(counts["ranges"]),
        f"{counts['plan_us'] / 1e6:.1f}",
        f"{counts['prefix_us'] / 1e6:.1f}",
        f"{ratio:.1f}",
    )


def large_table(graphs: Iterable[tuple[str, Graph]], device: TargetDevice) -> Table:
    """A line a graph: the time of its plan, and of all its prefixes by those of a sample."""
    heads = ("graph", "ops", "kernels", "one plan s", "prefixes sampled", "all prefixes s", "ratio")
    table = Table(
        f"plans of large graphs for {device}",
        heads,
        note=f"Every {SAMPLE_STEP}th prefix is lowered; all prefixes: the mean of these times "
        "their number, an estimate. Seconds are of the processor.",
    )
    for name, graph in graphs:
        fusion_plan(graph, device=device)
        start = time.process_time()
        plan = fusion_plan(graph, device=device)
        plan_s = time.process_time() - start
        times_s = list(_sampled_s(graph, device))
        if not times_s:
            print(f"{name}: no prefix of the sample can be cut off", file=sys.stderr)
            continue
        all_s = sum(times_s) / len(times_s) * plan.num_ops
        table.rows.append((name, str(plan.num_ops), str(len(plan.kernels)), f"{plan_s:.2f}",
                           str(len(times_s)), f"{all_s:.0f}", f"{all_s / plan_s:.0f}"))  # fmt: skip
    return table


def _sampled_s(graph: Graph, device: TargetDevice) -> Iterator[float]:
    """Processor seconds of lowering every tenth prefix, evenly over the graph."""
    stops = range(SAMPLE_STEP // 2, len(graph.program.ops) + 1, SAMPLE_STEP)
    for prefix in prefixes(graph, stops):
        if prefix is not None:
            start = time.process_time()
            fusion_plan(prefix, device=device)
            yield time.process_time() - start


def executed_table(graphs: Iterable[tuple[str, Graph]], device: TargetDevice) -> Table:
    """A line a graph: its counts by plan, by lowering every prefix and by running every prefix."""
    heads = ("graph", "plan", "lowered", "run", "plan s", "run s")
    table = Table(f"counts by execution on {device}", heads, note="Seconds are of the wall clock.")
    for name, graph in graphs:
        start = time.perf_counter()
        plan = fusion_plan(graph, device=device).num_kernels()
        middle = time.perf_counter()
        run = prefix_launches(graph, device=device)
        end = time.perf_counter()
        lowered = prefix_kernels(graph, device=device)
        table.rows.append((name, str(plan), str(lowered), str(run), f"{middle - start:.1f}",
                           f"{end - middle:.1f}"))  # fmt: skip
    return table


def _suite(name: str) -> list[tuple[str, str, Graph]]:
    suite = load_suite(name)
    return [(task.name, graph.name, graph.graph) for task in suite.tasks for graph in task.graphs]


def main(words: list[str]) -> Table:
    """The table that the words of a command line ask for."""
    device: TargetDevice = "cuda" if "cuda" in words else "cpu"
    names = [word for word in words if word != "cuda"] or ["demo"]
    if names[0] == "large":
        return large_table(captured(LARGE), device)
    if names[0] == "captures":
        graphs = ((name.split("/")[0], name, graph) for name, graph in captured(SMALL))
        return fusion_table(graphs, device)
    if names[0] == "executed":
        # One a task; on a GPU, where prefixes compile faster, one of each dtype of it.
        first = {(task, name.split("-")[-1] if device == "cuda" else ""): (name, graph)
                 for task, name, graph in reversed(_suite("demo"))
                 if len(graph.program.ops) <= MAX_EXECUTED_OPS[device]}  # fmt: skip
        return executed_table(first.values(), device)
    return fusion_table(_suite(names[0]), device)


if __name__ == "__main__":
    print_table(Console(width=150), main(sys.argv[1:]))
