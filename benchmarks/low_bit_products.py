"""Products of one row by weights in 8 and 4 bits, by passnet and by others, beside the time that
reading the weights takes.

Run it with `python -m benchmarks.low_bit_products [--json FILE]`, with onnxruntime and openvino
installed. The weights are those of a decoder of 150 million parameters, so they are read from
memory or a shared cache. All ways take turns on one thread; each figure is the median of its calls,
for one product by all weights.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from passnet.pages.tables.tables import Table, print_table
from passnet.passes.apply.packed_op import FROZEN, load_op
from passnet.passes.apply.packed_products import product_form

LAYERS = 16
SHAPES = ((768, 768), (256, 768), (256, 768), (768, 768), (2048, 768), (2048, 768), (768, 2048))
"""Outputs and inputs of the products of a layer; the decoder's last one has 32,000 outputs."""

GROUP = 128
"""Inputs that share a scale in the 4 bits of others; 32 and 64 read more."""

ROUNDS = 15

Way = tuple[str, int, Callable[[], object]]


def weights() -> list[torch.Tensor]:
    """Return the weights of a decoder."""
    torch.manual_seed(0)
    return [torch.randn(shape) / 30 for shape in (*LAYERS * SHAPES, (32_000, 768))]


def ways(own: list[torch.Tensor], rows: dict[int, torch.Tensor]) -> Iterator[Way]:
    """Yield a name, the bytes that are read, and a call, of each way."""
    count = sum(weight.numel() for weight in own)
    pairs = [(rows[weight.shape[1]], weight) for weight in own]
    yield "float32, torch", 4 * count, lambda: [torch.nn.functional.linear(x, w) for x, w in pairs]
    load_op()
    product = torch.ops.passnet_packed.product
    for bits, is_frozen in ((8, False), (8, True), (4, False), (4, True)):
        form = product_form(has_bias=False, bits=bits) + f" {FROZEN}" * is_frozen

        def ours(form: str = form) -> object:
            return [product(x, [w], None, form) for x, w in pairs]

        may_change = "weights constant" if is_frozen else "weights watched"
        yield f"{bits} bits, passnet, {may_change}", count * bits // 8, ours
    quantized = [_int8_of_torch(weight) for weight in own]
    yield (
        "8 bits, torch's dynamic quantisation",
        count,
        lambda: [linear(x) for (x, _), linear in zip(pairs, quantized, strict=True)],
    )
    yield "4 bits, torch's int4pack in bfloat16", count // 2, _int4_of_torch(pairs)
    for bits, accuracy in ((8, 4), (4, 4), (4, 0)):
        yield (
            f"{bits} bits, ONNX Runtime's MatMulNBits, accuracy {accuracy}",
            count * bits // 8,
            _onnxruntime(own, rows, bits, accuracy),
        )
    for mode in ("INT8_SYM", "INT4_SYM"):
        num_bytes = count * int(mode[3]) // 8
        yield f"{mode[3]} bits, OpenVINO, NNCF's {mode}", num_bytes, _openvino(own, rows, mode)


def _int8_of_torch(weight: torch.Tensor) -> Any:
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight = torch.nn.Parameter(weight)
    net = torch.nn.Sequential(linear)
    return torch.ao.quantization.quantize_dynamic(net, {torch.nn.Linear}, dtype=torch.qint8)[0]


def _int4_of_torch(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Callable[[], object]:
    packed = []
    for x, weight in pairs:
        outputs, inputs = weight.shape
        levels = torch.randint(0, 16, (outputs, inputs), dtype=torch.int32)
        scales = torch.full((inputs // GROUP, outputs, 2), 0.01, dtype=torch.bfloat16)
        weights = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, 1)
        packed.append((x[0].bfloat16(), weights, scales))
    product = torch.ops.aten._weight_int4pack_mm_for_cpu
    return lambda: [product(x, weights, GROUP, scales) for x, weights, scales in packed]


def _onnxruntime(
    own: list[torch.Tensor], rows: dict[int, torch.Tensor], bits: int, accuracy: int
) -> Callable[[], object]:
    import onnx
    import onnxruntime

    make = onnx.helper
    nodes, kept, results = [], [], []
    random = np.random.default_rng(0)
    for number, weight in enumerate(own):
        outputs, inputs = weight.shape
        shape = outputs, inputs // GROUP, GROUP * bits // 8
        values = random.integers(0, 256, shape, dtype=np.uint8)
        scales = np.full(outputs * (inputs // GROUP), 0.01, np.float32)
        kept += [onnx.numpy_helper.from_array(values, f"w{number}")]
        kept += [onnx.numpy_helper.from_array(scales, f"s{number}")]
        asked = {"K": inputs, "N": outputs, "bits": bits, "block_size": GROUP}
        names = [f"x{inputs}", f"w{number}", f"s{number}"]
        node = make.make_node(
            "MatMulNBits", names, [f"y{number}"], domain="com.microsoft",
            accuracy_level=accuracy, **asked,
        )  # fmt: skip
        nodes.append(node)
        results.append(make.make_tensor_value_info(f"y{number}", 1, [1, outputs]))
    given = [make.make_tensor_value_info(f"x{n}", 1, [1, n]) for n in rows]
    graph = make.make_graph(nodes, "products", given, results, kept)
    opsets = [make.make_opsetid("", 21), make.make_opsetid("com.microsoft", 1)]
    model = make.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feed = {f"x{n}": x[0].numpy() for n, x in rows.items()}
    return lambda: session.run(None, feed)


class _Products(torch.nn.Module):
    """All products as layers."""

    def __init__(self, own: list[torch.Tensor]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for weight in own:
            layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
            layer.weight = torch.nn.Parameter(weight)
            self.layers.append(layer)

    def forward(self, *rows: torch.Tensor) -> list[torch.Tensor]:
        """Return the products of the rows of each width."""
        of_width = {x.shape[-1]: x for x in rows}
        return [layer(of_width[layer.in_features]) for layer in self.layers]  # type: ignore


def _openvino(
    own: list[torch.Tensor], rows: dict[int, torch.Tensor], mode: str
) -> Callable[[], object]:
    import nncf
    import openvino

    net = _Products(own).eval()
    given = tuple(rows.values())
    with torch.no_grad():
        model = openvino.convert_model(torch.export.export(net, given))
    how = {"group_size": GROUP, "ratio": 1.0, "all_layers": True} if "4" in mode else {}
    model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode[mode], **how)
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    arrays = [x.numpy() for x in given]
    return lambda: request.infer(arrays, share_inputs=True, share_outputs=True)


def measured() -> list[dict[str, Any]]:
    """Return the median milliseconds of each way, and of reading as many bytes."""
    own = weights()
    rows = {width: torch.randn(1, 1, width) for width in (768, 2048)}
    found = []
    for way in ways(own, rows):
        way[2]()
        found.append(way)
    bytes_read = torch.zeros(max(each[1] for each in found) // 8, dtype=torch.int64)
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, num_bytes, call in found:
            part = bytes_read[: num_bytes // 8]
            for key, run in ((name, call), (f"reading for {name}", part.sum)):
                start = time.perf_counter()
                run()
                times.setdefault(key, []).append(1e3 * (time.perf_counter() - start))
    return [
        {
            "way": name,
            "bytes": num_bytes,
            "ms": statistics.median(times[name]),
            "reading_ms": statistics.median(times[f"reading for {name}"]),
        }
        for name, num_bytes, _ in found
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    torch.set_num_threads(1)
    with torch.inference_mode():
        records = measured()
    if words.json:
        words.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    lines = [
        (r["way"], f"{r['ms']:.2f}", f"{r['ms'] / r['reading_ms']:.2f}", f"{r['bytes'] / 1e6:.0f}")
        for r in records
    ]
    print_table(Console(width=120), Table("Products", ("way", "ms", "over reading", "MB"), lines))
