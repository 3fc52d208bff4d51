"""What holds optimised nets back, by the kinds of their operations, as the runtime that won says.

Run it with `python -m benchmarks.optimize_parts RECORDS`, the records of `benchmarks.optimize`, on
the machine and with the threads of those, as what was built of each net is in the folder of their
name. Of nets for which OpenVINO or ONNX Runtime is the fastest, the runtime is asked how long each
operation of a call took. Products (convolutions, matrices, attention) are put beside the rate of
the fastest product of two matrices: `at best` is the speedup over eager torch if they ran at that
rate and all else took what it takes, `rest free` if all else took no time and they what they take.
"""

import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console

from benchmarks.optimize import folder_of
from benchmarks.optimize_bounds import fastest_rate, operations
from passnet.core.records.serialise import decode
from passnet.optimizer.backends import onnxruntime as onnx_backend
from passnet.optimizer.backends import openvino as openvino_backend
from passnet.optimizer.record import OptimizedRecord
from passnet.pages.tables.tables import Table, markdown, print_table

NUM_CALLS = 20
PRODUCTS = ("Conv", "FullyConnected", "MatMul", "Gemm", "Deconvolution", "Attention", "MHA")
CONVERSION = "Convert"
"""What the names of kinds of products contain, and the kind that is none of them."""

NUM_KINDS = 3
"""How many kinds of other operations are named."""


def openvino_parts(folder: Path, threads: int) -> dict[str, float]:
    """Microseconds a call of each kind of operation by OpenVINO."""
    import openvino

    core = openvino.Core()
    settings = {**openvino_backend.SETTINGS, "INFERENCE_NUM_THREADS": threads, "PERF_COUNT": True}
    model = core.compile_model(core.read_model(folder / openvino_backend.NET_FILE), "CPU", settings)
    request = model.create_infer_request()
    for port in request.model_inputs:
        request.get_tensor(port).data[:] = _values(port.shape, port.element_type.to_dtype())
    parts: Counter[str] = Counter()
    for number in range(NUM_CALLS + 3):
        request.infer()
        if number >= 3:
            for each in request.profiling_info:
                parts[each.node_type] += each.real_time.total_seconds() * 1e6 / NUM_CALLS
    return {kind: us for kind, us in parts.items() if us > 0}


def onnxruntime_parts(folder: Path, threads: int) -> dict[str, float]:
    """Microseconds a call of each kind of operation by ONNX Runtime."""
    import onnxruntime

    with TemporaryDirectory() as scratch:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.enable_profiling, options.log_severity_level = True, 4
        options.profile_file_prefix = f"{scratch}/profile"
        session = onnxruntime.InferenceSession(
            folder / onnx_backend.NET_FILE, options, providers=["CPUExecutionProvider"]
        )
        kinds = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(bool)": "bool"}
        inputs = {each.name: _values(each.shape, kinds[each.type]) for each in session.get_inputs()}
        for _ in range(NUM_CALLS):
            session.run(None, inputs)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    parts: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            parts[event["args"]["op_name"]] += event["dur"] / NUM_CALLS
    return dict(parts)


def _values(shape: Any, dtype: Any) -> Any:
    values = torch.zeros(tuple(shape)).uniform_(0.0, 1.0)
    return values.numpy().astype(dtype)


WAYS: Mapping[str, Callable[[Path, int], dict[str, float]]] = {
    "openvino_frozen": openvino_parts,
    "onnxruntime_frozen": onnxruntime_parts,
}


def is_product(kind: str) -> bool:
    """Whether a kind of operation is a convolution, a product of matrices, or attention."""
    return kind != CONVERSION and any(name in kind for name in PRODUCTS)


def row(record: Mapping[str, Any], records: Path, rate: float) -> tuple[Any, ...] | None:
    """What a net's time goes to, or None where another way than these is the fastest."""
    entry, batch = str(record["entry"]), record.get("batch")
    [form] = decode(json.dumps(record["record"]), OptimizedRecord).forms
    folder = folder_of(records, entry) / "form-0" / form.chosen
    if form.chosen not in WAYS or not folder.is_dir():
        return None
    parts = WAYS[form.chosen](folder, int(record["threads"]))
    whole = sum(parts.values())
    others = Counter({kind: us for kind, us in parts.items() if not is_product(kind)})
    share, own_ms = 1 - others.total() / whole, form.ms
    count = operations(entry, int(batch) if batch else None)
    reached = count / rate / (share * own_ms / 1e3) if share else math.nan
    named = ", ".join(f"{k} {100 * us / whole:.0f}" for k, us in others.most_common(NUM_KINDS))
    at_best = form.eager_ms / (own_ms * (1 - share) + 1e3 * count / rate)
    rest_free = form.eager_ms / (own_ms * share) if share else math.inf
    return entry, form.chosen, form.eager_ms / own_ms, share, reached, at_best, rest_free, named


def main(records: Path) -> None:
    """Print a row for each net, and the geometric means."""
    lines = [json.loads(line) for line in records.read_bytes().splitlines()]
    measured = [record for record in lines if "record" in record]
    torch.set_num_threads(measured[0]["threads"])
    rate = fastest_rate()
    rows = [found for record in measured if (found := row(record, records, rate))]
    heads = ("net", "way", "optimize, frozen", "products %", "of the fastest rate", "at best",
             "rest free", "other kinds, % of the time")  # fmt: skip
    table = Table(f"What holds nets back, at {rate / 1e9:.0f} GFLOP/s", heads)
    for entry, way, speedup, share, reached, at_best, rest_free, named in rows:
        table.rows.append((
            entry, way, f"{speedup:.2f}", f"{100 * share:.0f}", f"{reached:.2f}", f"{at_best:.2f}",
            f"{rest_free:.2f}", named,
        ))  # fmt: skip
    means = [
        math.exp(statistics.fmean(math.log(each[index]) for each in rows)) for index in (2, 5, 6)
    ]
    shares = statistics.fmean(each[3] for each in rows)
    speedup, at_best, rest_free = (f"{mean:.2f}" for mean in means)
    table.rows.append(("mean", "", speedup, f"{100 * shares:.0f}", "", at_best, rest_free, ""))
    print_table(Console(width=160), table)
    records.with_name(f"{records.stem}-parts.md").write_text(markdown([table]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
