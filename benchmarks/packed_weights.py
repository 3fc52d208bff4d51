"""Stock `torch.compile`, and with weights packed once by `passnet.passes_in_inductor`.

Run it with `python -m benchmarks.packed_weights FOLDER [--net NAME ...] [--threads N]`, and again
to go on. `--net drawn` measures the 40 nets of `optimize_nets.txt`. All ways of a net are timed in
turns in one process; `again` is stock `torch.compile` once more, and `aot_packed` a package of
AOTInductor with packed weights. Weights may change there, and are folded in for good by the others:
`aot_packed_frozen`, `frozen` (Inductor's `freezing`), and as `benchmarks.deployed` sets them up by
hand `aot`, `openvino`, `onnxruntime` and, on AMD's processors, `zentorch`. `square` is a product of
square matrices beside them: what the net's products and convolutions would take at its rate is the
least time of the net.
"""

import copy
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import torch
from torch._inductor import config
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.deployed import DRAWN, NETS, WAYS
from benchmarks.in_turns import Run, main, tensors_of
from passnet.errors import BackendError
from passnet.judge.timing.rounds import time_calls
from passnet.judge.verdict.precision import relative_error
from passnet.optimizer.backends.backend import build_backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import NetCall
from passnet.pages.tables.tables import Table
from passnet.passes.inductor_pass import InductorPass

RIVALS = ("aot", "openvino", "onnxruntime", "zentorch")

PACKAGES = ("aot_packed", "aot_packed_frozen")

SECONDS = 3.0
"""Time for the rounds of each way."""

SQUARE = 1024
"""Rows and columns of the product that the rate is taken from."""


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
    with (
        torch.no_grad(),
        config.patch(force_disable_caches=True),
        tempfile.TemporaryDirectory(prefix="passnet-packed-") as name_of_folder,
    ):
        right = tensors_of(case.net(*call))
        runs: dict[str, Callable[..., Any]] = {"eager": case.net}
        runs["stock"] = _compiled(case.net, call)
        own = InductorPass(packed_weights=True)
        runs["packed"] = _compiled(case.net, call, {"pre_grad_custom_pass": own})
        with config.patch(freezing=True):  # Dynamo does not look at a net's options
            runs["frozen"] = _compiled(case.net, call, {"freezing": True})
        runs["again"] = runs["stock"]
        folder = Path(name_of_folder)
        for way in RIVALS:
            (folder / way).mkdir()
            with suppress(Exception):  # whatever they raise, there is a dash
                made = WAYS[way](copy.deepcopy(case), folder / way)  # zentorch writes into weights
                made(*call)
                runs[way] = made
        for way in PACKAGES:
            with suppress(BackendError):
                given = NetCall(case.net, tuple(call), {})
                built = build_backend(way, BACKENDS[way], given, folder / way)
                runs[way] = lambda *tensors, built=built: built.run([*tensors])
        errors = {
            way: max(
                relative_error(own.double().numpy(), true.double().numpy())
                for own, true in zip(tensors_of(run(*call)), right, strict=True)
                if true.is_floating_point()
            )
            for way, run in runs.items()
        }
        with FlopCounterMode(display=False) as counter:
            case.net(*call)
        ways = {way: (lambda run=run: run(*call)) for way, run in runs.items()}
        square = torch.randn(SQUARE, SQUARE)
        ways["square"] = lambda: square @ square
        times = time_calls(ways, SECONDS, always=tuple(ways))
    record |= {"packed_calls": own.num_packed, "errors": errors}
    record["products"] = counter.get_total_flops()
    return record | {"ms": {way: times.ms(way) for way in ways}}


def tables(records: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Yield two tables for each number of threads: over stock torch.compile, and over the best."""
    for threads in sorted({record["threads"] for record in records}):
        of_threads = [each for each in records if each["threads"] == threads]
        yield _over_stock(of_threads, f"Over stock torch.compile, {threads} threads")
        if others := [each for each in of_threads if "openvino" in each["ms"]]:
            yield _over_best(others, f"Over the best without passes, {threads} threads")


def _over_stock(records: Sequence[Mapping[str, Any]], title: str) -> Table:
    rows, gains = [], []
    for record in records:
        ms = record["ms"]
        gains.append(ms["stock"] / ms["packed"])
        ways = ("again", "frozen", "packed")
        over = [f"{ms['stock'] / ms[way]:.2f}" if way in ms else "–" for way in ways]
        cells = [f"{ms[way]:.3f}" for way in ("eager", "stock")]
        error = f"{record['errors']['packed']:.0e}"
        packed = str(record["packed_calls"])
        rows.append((record["net"], *cells, *over, packed, error))
    mean = geometric_mean(gains)
    return Table(
        title,
        ("net", "eager ms", "stock ms", "again", "frozen", "packed", "calls", "error"),
        rows,
        f"Geometric mean of packed: {mean:.3f}; least {min(gains):.3f}.",
    )


def _over_best(records: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Milliseconds of all ways, and how many times as fast the better packed way is whose weights
    may change; then how many times as fast the net's products alone would be, at the rate of a
    square product.
    """
    others = ("eager", "stock", "frozen", *RIVALS)
    rows, gains = [], []
    for record in records:
        ms = record["ms"]
        best = min(ms[way] for way in others if way in ms)
        gains.append(best / min(ms[way] for way in ("packed", "aot_packed") if way in ms))
        cells = [f"{ms[way]:.2f}" if way in ms else "–" for way in (*others, "packed", *PACKAGES)]
        rate = 2 * SQUARE**3 / ms["square"] if "square" in ms else 0.0
        bound = f"{best * rate / record['products']:.2f}" if rate else "–"
        rows.append((record["net"], *cells, f"{gains[-1]:.2f}", bound))
    num_won, mean = sum(gain >= 1.03 for gain in gains), geometric_mean(gains)
    return Table(
        title,
        ("net", *others, "packed", *PACKAGES, "over best", "bound"),
        rows,
        f"Faster by 3 % on {num_won} of {len(rows)} nets; geometric mean {mean:.3f}.",
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
        sys.exit()
    main(
        Run("benchmarks.packed_weights", tuple(NETS), tables, tuple(DRAWN)),
        str(__doc__),
    )
