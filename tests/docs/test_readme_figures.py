"""The table of backends in the README is that of the committed records; quick."""

import gzip
import json
import math
import re
import statistics

from benchmarks.optimize import returned_ms
from passnet.core.records.serialise import decode
from passnet.optimizer.record import OptimizedRecord
from tests.docs.pages import ROOT

BACKENDS = {
    "AOTInductor with weights packed once (passnet's own)": "aot_packed",
    "OpenVINO": "openvino_frozen",
    "ONNX Runtime": "onnxruntime_frozen",
    "AOTInductor with freezing and max-autotune": "aot_autotune_frozen",
    "AOTInductor": "aot",
    "`torch.compile`": "compile",
}
"""Backends as the README calls them. Those of torch are timed as torch itself calls them."""


def speedups() -> dict[str, list[float | None]]:
    """Return the speedup of each net by backend, None where it is not right, and by the best."""
    found: dict[str, list[float | None]] = {name: [] for name in (*BACKENDS, "best")}
    with gzip.open(ROOT / "baselines" / "optimize" / "records.jsonl.gz", "rt") as lines:
        records = [json.loads(line)["record"] for line in lines]
    for record in records:
        [form] = decode(json.dumps(record), OptimizedRecord).forms
        returned = {each.engine: returned_ms(each, False) for each in form.engines}
        plain = {each.engine: each.plain_ms for each in form.engines}
        for name, backend in BACKENDS.items():
            is_called_by_torch = backend in ("aot", "compile") and plain.get(backend)
            ms = (plain if is_called_by_torch else returned).get(backend)
            found[name].append(form.eager_ms / ms if ms else None)
        found["best"].append(form.eager_ms / min(ms for ms in returned.values() if ms))
    return found


def mean(values: list[float | None]) -> float:
    """Return the geometric mean, with 1 where a backend is not right."""
    return math.exp(statistics.fmean(math.log(value or 1.0) for value in values))


def test_the_table_of_backends_is_that_of_the_records() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    by_backend = speedups()
    for name in BACKENDS:
        right = sum(value is not None for value in by_backend[name])
        assert f"| {name} | {mean(by_backend[name]):.2f} | {right} |" in text
    best = by_backend["best"]
    assert f"| **{mean(best):.2f}** | **{len(best)} of {len(best)} nets** |" in text
    [first] = re.findall(r"\*\*([\d.]+) times as fast as eager", text)
    assert first == f"{mean(best):.1f}"
