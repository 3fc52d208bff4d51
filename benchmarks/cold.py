"""Does a net see the time of a kernel with warm caches, or with cold ones? Ten captured nets.

Run it with `python -m benchmarks.cold [NET ...]` in a checkout with `captures`. The compiler writes
passes for a net, and every place that they replace is timed in the running net, between its other
ops: the replacement, and in other runs the ops that it replaces. The same calls are timed on the
same values with warm caches (in a row) and with cold ones (after other work has written 8 MiB).
The speedup of all places of a net by each clock is a row.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import exp, log
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from rich.console import Console

from benchmarks.fusion import captured
from benchmarks.judge_cost import write_passes
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph
from passnet.graph.values.cost import torch_arguments
from passnet.judge.timing.cold_caches import EVICTED_BYTES
from passnet.pages.tables.tables import Table, print_table
from passnet.passes.apply.rewrite import Site, apply_passes
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes

NETS = (
    "timm/resnet18", "timm/convnext_tiny", "timm/mobilenetv3_small_100", "timm/efficientnet_b0",
    "timm/levit_128", "transformers/RobertaModel", "transformers/Qwen3Model",
    "transformers/ElectraForCausalLM", "transformers/GPT2ForSequenceClassification",
    "transformers/DistilBertForMultipleChoice",
)  # fmt: skip
ROUNDS = 5
"""Runs of a net for each clock and side; the fastest half counts."""
REPEATS = 4
"""Calls in a row, of which the last is the warm one."""

Clock: TypeAlias = Literal["in the net", "warm", "cold"]
Side: TypeAlias = Literal["eager", "pass"]


class TimedSites(torch.fx.Interpreter):
    """A run of a net that times what it calls at the places of passes."""

    def __init__(
        self, module: torch.fx.GraphModule, sites: Sequence[Site], clock: Clock, side: Side
    ) -> None:
        super().__init__(module)
        self._sites = {site.node: site for site in sites}
        self._clock, self._side = clock, side
        self._memory = np.zeros(EVICTED_BYTES, np.uint8)
        self.times_ns: list[int] = []

    def run_node(self, n: torch.fx.Node) -> Any:
        """Run a node; time it if a pass has made it."""
        if (site := self._sites.get(n)) is None:
            return super().run_node(n)
        call = self._call_of(site)
        if self._clock == "warm":
            for _ in range(REPEATS - 1):
                call()
        elif self._clock == "cold":
            np.add(self._memory, 1, out=self._memory)
        start = time.perf_counter_ns()
        call()
        self.times_ns.append(time.perf_counter_ns() - start)
        return super().run_node(n)

    def _call_of(self, site: Site) -> Callable[[], Any]:
        if self._side == "eager":
            values = [self._value(each) for each in site.pattern_arguments]
            original = original_of(site.source.pattern.anchor.graph)
            return lambda: original(*values)
        arguments, named = self.fetch_args_kwargs_from_env(site.node)
        target: Any = site.node.target
        return lambda: target(*arguments, **named)

    def _value(self, value: Any) -> Any:
        return self.env[value] if isinstance(value, torch.fx.Node) else value


@cache
def original_of(pattern: torch.fx.Graph) -> Callable[..., Any]:
    """Return the function that computes the graph of a pattern."""
    return torch.fx.GraphModule(torch.nn.Module(), pattern).forward


def rewritten(graph: Graph, folder: Path) -> tuple[torch.fx.GraphModule, list[Site]]:
    """Return a graph with the compiler's passes applied, and their places."""
    write_passes(graph, folder)
    module = build(graph.program)
    _, sites = apply_passes(
        module, load_passes(inspect_folder(folder)), torch_arguments(graph, "fresh", 0)
    )
    return module, [site for site in sites if not site.prepared]


def times_ms(graph: Graph) -> Iterator[tuple[Clock, Side, float, int]]:
    """Yield the time of all places of a net by each clock and side, and their number."""
    with TemporaryDirectory() as name:
        module, sites = rewritten(graph, Path(name, "passes"))
        inputs = torch_arguments(graph, "fresh", 0)
        times: dict[tuple[Clock, Side], list[int]] = defaultdict(list)
        for number in range(ROUNDS + 1):
            for clock in get_args(Clock):
                for side in get_args(Side):
                    run = TimedSites(module, sites, clock, side)
                    run.run(*inputs)
                    if number:  # the first run pages memory in
                        times[clock, side].append(sum(run.times_ns))
    for (clock, side), found in times.items():
        fastest = sorted(found)[: ROUNDS // 2 + 1]
        yield clock, side, fmean(fastest) / 1e6, len(sites)


def main(nets: Sequence[str]) -> None:
    """Print the speedups of the passes of nets by each clock."""
    clocks: tuple[Clock, ...] = get_args(Clock)
    heads = ("net", "places", "eager ms", *clocks)
    table, off = Table("Speedups of passes in nets", heads), defaultdict(list)
    for name, graph in captured((net, 0) for net in nets):
        with torch.no_grad():
            rows = list(times_ms(graph))
        found = {(clock, side): ms for clock, side, ms, _ in rows}
        speedups = [found[clock, "eager"] / found[clock, "pass"] for clock in clocks]
        for clock, speedup in zip(clocks[1:], speedups[1:], strict=True):
            off[clock].append(abs(log(speedup / speedups[0])))
        cells = (name, str(rows[0][3]), f"{found['in the net', 'eager']:.2f}")
        table.rows.append((*cells, *(f"{speedup:.2f}" for speedup in speedups)))
        print(*table.rows[-1], flush=True)
    print_table(Console(), table)
    for clock, logs in off.items():
        print(f"{clock}: off by {exp(fmean(logs)) - 1:.1%} from the speedup in the net, on average")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:] or NETS)
