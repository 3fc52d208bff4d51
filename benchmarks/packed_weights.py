"""Stock `torch.compile`, and with weights packed once by `passnet.passes_in_inductor`.

Run it with `python -m benchmarks.packed_weights FOLDER [--net NAME ...] [--threads N]`, and again
to go on. `--net drawn` measures the 40 nets of `optimize_nets.txt`. All ways of a net are timed in
turns in one process; `again` is stock `torch.compile` once more. Weights may change but under
`frozen`, Inductor's own `freezing`, which folds them in for good.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

import torch
from torch._inductor import config

from benchmarks.deployed import DRAWN, NETS
from benchmarks.in_turns import Run, main, tensors_of
from passnet.judge.timing.rounds import time_calls
from passnet.judge.verdict.precision import relative_error
from passnet.pages.tables.tables import Table
from passnet.passes.inductor_pass import InductorPass

SECONDS = 3.0
"""Time for the rounds of each way."""


def _compiled(
    net: torch.nn.Module, call: Sequence[torch.Tensor], options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Return a compiled net; with options of their own, ways share no frame behind graph breaks."""
    compiled: Any = torch.compile(net, dynamic=False, options=options)
    compiled(*call)
    return compiled


def measure(name: str, threads: int) -> dict[str, Any]:
    """Build and time one net in every way, in this process."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    case = (NETS | DRAWN)[name]()
    call = case.calls[-1]
    record: dict[str, Any] = {"net": name, "threads": threads, "torch": torch.__version__}
    # a graph from a cache is packed already, and not counted
    with torch.no_grad(), config.patch(force_disable_caches=True):
        right = tensors_of(case.net(*call))
        runs: dict[str, Callable[..., Any]] = {"eager": case.net}
        runs["stock"] = _compiled(case.net, call)
        own = InductorPass(packed_weights=True)
        runs["packed"] = _compiled(case.net, call, {"pre_grad_custom_pass": own})
        runs["frozen"] = _compiled(case.net, call, {"freezing": True})
        runs["again"] = runs["stock"]
        errors = {
            way: max(
                relative_error(own.double().numpy(), true.double().numpy())
                for own, true in zip(tensors_of(run(*call)), right, strict=True)
                if true.is_floating_point()
            )
            for way, run in runs.items()
        }
        ways = {way: (lambda run=run: run(*call)) for way, run in runs.items()}
        times = time_calls(ways, SECONDS, always=tuple(ways))
    record |= {"packed_calls": own.num_packed, "errors": errors}
    return record | {"ms": {way: times.ms(way) for way in ways}}


def tables(records: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Yield a table for each number of threads."""
    for threads in sorted({record["threads"] for record in records}):
        rows, gains = [], []
        for record in (each for each in records if each["threads"] == threads):
            ms = record["ms"]
            gains.append(ms["stock"] / ms["packed"])
            over = [ms["stock"] / ms[way] for way in ("again", "frozen", "packed")]
            cells = [f"{ms[way]:.3f}" for way in ("eager", "stock")]
            error = f"{record['errors']['packed']:.0e}"
            packed = str(record["packed_calls"])
            rows.append((record["net"], *cells, *(f"{x:.2f}" for x in over), packed, error))
        mean = geometric_mean(gains)
        yield Table(
            f"Over stock torch.compile, {threads} threads",
            ("net", "eager ms", "stock ms", "again", "frozen", "packed", "calls", "error"),
            rows,
            f"Geometric mean of packed: {mean:.3f}; least {min(gains):.3f}.",
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
        sys.exit()
    main(
        Run("benchmarks.packed_weights", tuple(NETS), tables, tuple(DRAWN)),
        str(__doc__),
    )
