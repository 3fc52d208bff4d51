"""Single recurrent layers by packed weights, and by torch, OpenVINO and ONNX Runtime.

Run it with `python -m benchmarks.recurrent [FILE]`; FILE is for records. All ways of a layer take
turns on one thread, and the others are set up as in `benchmarks.deployed`. Weights may change in
torch and in ours alone.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.deployed import WAYS, Deployed
from benchmarks.in_turns import tensors_of
from passnet.judge.timing.rounds import time_calls
from passnet.judge.verdict.precision import relative_error
from passnet.pages.tables.tables import Table, print_table
from passnet.passes.apply.packed_op import load_op

KINDS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
SIZES = ((1, 1, 80, 512), (100, 1, 80, 512), (20, 4, 64, 64), (50, 16, 128, 256), (32, 32, 384, 96))
"""Steps, sequences, inputs and size."""

SECONDS = 1.0
"""Time for the rounds of each way."""

RIVALS = ("openvino", "onnxruntime")


def measure(kind: str, sizes: tuple[int, int, int, int]) -> dict[str, Any]:
    """Return the milliseconds of each way on one layer, and its error against torch."""
    steps, batch, inputs, size = sizes
    torch.manual_seed(0)
    net, x = KINDS[kind](inputs, size).eval(), torch.randn(steps, batch, inputs)
    weights, zeros = [*net.parameters()], torch.zeros(batch, size)
    load_op()
    op = torch.ops.passnet_packed.recur
    runs: dict[str, Callable[..., Any]] = {
        "torch": net,
        "packed": lambda x: op(x, weights, zeros, zeros if kind == "lstm" else None, f"{kind} 0"),
    }
    with tempfile.TemporaryDirectory() as made, torch.no_grad():
        for way in RIVALS:
            runs[way] = WAYS[way](Deployed(net, [(x,)]), Path(made))
        right = net(x)[0].double().numpy()
        error = {
            way: relative_error(tensors_of(run(x))[0].double().numpy(), right)
            for way, run in runs.items()
        }
        calls = {way: lambda run=run: run(x) for way, run in runs.items()}
        times = time_calls(calls, SECONDS, always=tuple(runs))
    return {
        "kind": kind,
        "sizes": sizes,
        "ms": {way: times.ms(way) for way in runs},
        "error": error,
    }


def main(file: Path | None) -> None:
    """Measure all layers, and print a table."""
    torch.set_num_threads(1)
    heads = (
        "layer",
        "steps",
        "sequences",
        "inputs",
        "size",
        "torch",
        *RIVALS,
        "packed",
        "over best",
    )
    table = Table("Milliseconds of single recurrent layers", heads)
    records = [measure(kind, sizes) for kind in KINDS for sizes in SIZES]
    for record in records:
        ms = record["ms"]
        best = min(ms[way] for way in ("torch", *RIVALS))
        cells = [f"{ms[way]:.3f}" for way in ("torch", *RIVALS, "packed")]
        sizes = map(str, record["sizes"])
        table.rows.append((record["kind"], *sizes, *cells, f"{best / ms['packed']:.2f}"))
    print_table(Console(width=120), table)
    if file:
        file.write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)
