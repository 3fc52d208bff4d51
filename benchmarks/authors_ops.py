"""What the author compiler writes for single functions and short chains, beside eager torch and
Inductor.

Run it with `python -m benchmarks.authors_ops [NAME ...]`; of all functions, or of those whose names
begin so. Arguments are float32 of 4 KiB to 1 MiB, which lie in caches, on one thread. The pass is
called as in a rewritten graph, Inductor's code without the guards of torch.compile; both and eager
torch take turns. `kernel` is the pass's C++ alone, without the allocation and the call.

`error` is the largest difference from float64, over eager torch's (both in units of the last place
of the largest value of the output; at most 1 is given as 1).
"""

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from passnet.agent.authors.compiler import compile_plans, range_source
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.timing.rounds import time_calls
from passnet.pages.tables.tables import Table, print_table
from passnet.passes import cpp
from passnet.passes.backend import compile_graph, compile_with_inductor, loaded_passes
from passnet.passes.codegen.folder_text import pass_folder
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.codegen.products import product_folder
from passnet.passes.files import Files, write_files

WIDTH = 256
ROWS = (4, 64, 1024)
"""Rows of so many values: 4 KiB, 64 KiB and 1 MiB."""

SECONDS = 0.15
F = "torch.nn.functional"

Shape = tuple[int | str, ...]
"""Sizes of a tensor: of "rows" there are as many as `ROWS` says, and "side" is their root."""


@dataclass(frozen=True)
class Case:
    """Lines of a program of `x` and more arguments, of these shapes, that computes `y`."""

    name: str
    lines: tuple[str, ...]
    shapes: dict[str, Shape]


def _unary(name: str, text: str) -> Case:
    return Case(name, (f"y = {text}",), {"x": ("rows", WIDTH)})


def _rows(name: str, *lines: str, **more: Shape) -> Case:
    return Case(name, lines, {"x": ("rows", WIDTH), **more})


NORM = f"{F}.layer_norm({{}}, ({WIDTH},), w, b, 1e-05)"
WHOLE: Shape = ("rows", WIDTH)
ROW: Shape = (WIDTH,)
BATCH_NORM = f"n = {F}.batch_norm(x, m, v, w, b, False, 0.1, 1e-05)"
PER_CHANNEL: dict[str, Shape] = dict.fromkeys("mvwb", (64,))
IMAGE: Shape = (1, 64, "side", "side")

CASES = (
    _rows("linear 256 to 1024", f"y = {F}.linear(x, w, b)", w=(1024, WIDTH), b=(1024,)),
    Case("linear 1024 to 256", (f"y = {F}.linear(x, w, b)",),
         {"x": ("rows", 1024), "w": (256, 1024), "b": ROW}),
    _unary("gelu none", "torch._C._nn.gelu(x)"),
    _unary("gelu tanh", "torch._C._nn.gelu(x, approximate='tanh')"),
    _unary("silu", f"{F}.silu(x)"),
    _unary("sigmoid", "torch.sigmoid(x)"),
    _unary("tanh", "torch.tanh(x)"),
    _unary("exp", "torch.exp(x)"),
    _unary("erf", "torch.erf(x)"),
    _rows("log", "a = torch.abs(x)", "y = torch.log(a)"),
    _unary("softplus", f"{F}.softplus(x)"),
    _unary("elu", f"{F}.elu(x)"),
    _unary("mish", f"{F}.mish(x)"),
    _unary("hardswish", f"{F}.hardswish(x)"),
    _unary("relu", "torch.relu(x)"),
    _unary("sqrt", "torch.sqrt(x)"),
    _unary("rsqrt", "torch.rsqrt(x)"),
    _unary("sin", "torch.sin(x)"),
    _unary("pow", "torch.pow(x, 2.5)"),
    _rows("add", "y = x + z", z=WHOLE),
    _rows("mul", "y = x * z", z=WHOLE),
    _rows("div", "y = x / z", z=WHOLE),
    _unary("softmax", "torch.softmax(x, -1)"),
    _unary("log_softmax", "torch.log_softmax(x, -1)"),
    _rows("layer_norm", f"y = {NORM.format('x')}", w=ROW, b=ROW),
    _rows("rms_norm", f"y = {F}.rms_norm(x, ({WIDTH},), w, 1e-06)", w=ROW),
    _unary("mean", "x.mean(-1)"),
    _unary("sum", "x.sum(-1)"),
    _unary("max", "x.amax(-1)"),
    _unary("sum all", "x.sum()"),
    _unary("sum rows", "x.sum(0)"),
    _unary("var", "x.var(-1)"),
    Case("batch_norm + relu", (BATCH_NORM, "y = torch.relu(n)"), {"x": IMAGE, **PER_CHANNEL}),
    Case("batch_norm + silu", (BATCH_NORM, f"y = {F}.silu(n)"), {"x": IMAGE, **PER_CHANNEL}),
    Case("mean of images", ("y = x.mean((2, 3))",), {"x": IMAGE}),
    _rows("bias + gelu", "s = x + b", "y = torch._C._nn.gelu(s)", b=ROW),
    _rows("swiglu", f"s = {F}.silu(x)", "y = s * z", z=WHOLE),
    _rows("residual + layer_norm", "s = x + z", f"y = {NORM.format('s')}", z=WHOLE, w=ROW, b=ROW),
    _rows("layer_norm + gelu", f"n = {NORM.format('x')}", "y = torch._C._nn.gelu(n)", w=ROW, b=ROW),
    _rows(
        "rms_norm by hand", "f = x.pow(2)", "v = f.mean(-1, keepdim=True)", "e = v + 1e-06",
        "r = torch.rsqrt(e)", "n = x * r", "y = w * n", w=ROW,
    ),
    _rows("mask + softmax", "s = x * 0.125", "t = s + z", "y = torch.softmax(t, -1)", z=WHOLE),
    Case(
        "rotary",
        ("a = x[..., :32]", "c = x[..., 32:]", "d = -c", "e = torch.cat((d, a), -1)", "f = x * w",
         "g = e * b", "y = f + g"),
        {"x": (1, 4, "rows", 64), "w": ("rows", 64), "b": ("rows", 64)},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """Milliseconds of a call by eager torch, the pass, its kernel alone if any, and Inductor's
    code; and the errors of eager torch and of the pass.
    """

    ms: dict[str, float]
    eager_error: float
    pass_error: float


def graph_of(case: Case, rows: int) -> Graph:
    """The graph of a case, of so many rows."""
    sizes: dict[str | int, int] = {"rows": rows, "side": math.isqrt(4 * rows)}
    body = "".join(f"        {line}\n" for line in case.lines)
    params = ", ".join(case.shapes)
    text = (
        "import torch\n\nclass GraphModule(torch.nn.Module):\n"
        f"    def forward(self, {params}):\n{body}        return (y,)\n"
    )
    tensors = tuple(
        TensorSpec(name, tuple(sizes.get(size, size) for size in shape), "float32")  # type: ignore[misc]
        for name, shape in case.shapes.items()
    )
    return Graph(parse_program(text), tensors)


def measure(case: Case, rows: int, folder: Path) -> Measured:
    """The times and errors of a case."""
    graph = graph_of(case, rows)
    generator = torch.Generator().manual_seed(20261123)
    inputs = [torch.randn(spec.shape, generator=generator) for spec in graph.tensors]
    if "v" in case.shapes:
        inputs[list(case.shapes).index("v")].abs_().add_(0.1)
    files, kernel, _outputs = product_folder([graph]), None, None
    if not files:
        files, kernel, _outputs = _compiled_ranges(graph, case, inputs)
    write_files(files, folder)
    eager = build(graph.program).forward
    rewritten, reports = compile_graph(build(graph.program), inputs, loaded_passes(folder))
    assert sum(report.num_matches for report in reports) == 1, reports
    compiled = compile_with_inductor(build(graph.program), inputs)
    calls: dict[str, Callable[[], Any]] = {
        "eager": lambda: eager(*inputs),
        "pass": lambda: rewritten(*inputs),
        "inductor": lambda: compiled(*inputs),
    }
    if kernel is not None:
        calls["kernel"] = kernel
    exact = eager(*(value.double() for value in inputs))[0]
    errors = [_error(calls[name]()[0], exact) for name in ("eager", "pass")]
    times = time_calls(calls, SECONDS, tuple(calls))
    return Measured({name: times.ms(name) for name in calls}, errors[0], errors[1])


def _compiled_ranges(
    graph: Graph, case: Case, inputs: Sequence[torch.Tensor]
) -> tuple[Files, Callable[[], None], list[torch.Tensor]]:
    """The pass folder for all ops of a case, a call of nothing but its C++, and the memory into
    which that writes.
    """
    plan = compile_plans(graph)[0]
    lowering = GraphLowering(graph, case.name)
    options = (("cpp.threads", 1), *plan.options)
    [lowered] = [lowering.lowered(span, options) for span in lowering.largest(options)]
    assert lowered is not None, lowering.refused
    source = range_source(lowered, plan)
    by_name = dict(zip(case.shapes, inputs, strict=True))
    outputs = [
        torch.empty_strided(layout.shape, layout.stride, dtype=getattr(torch, layout.dtype))
        for _, layout in lowered.code.outputs
    ]
    given = [by_name[spec.original_name or ""] for spec in lowered.cut.tensors]
    kernel = cpp.kernel(source.text, "launch", "p" * (len(given) + len(outputs)))
    call = partial(kernel, *(tensor.data_ptr() for tensor in (*given, *outputs)))
    return pass_folder([source], is_strided=True), call, outputs


def _error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest difference, in units of the last place of the largest finite value."""
    known = exact.isfinite()
    scale = float(exact[known].abs().max()) * torch.finfo(actual.dtype).eps
    return float((actual.double() - exact)[known].abs().max()) / scale


def table_of(results: Sequence[tuple[str, int, Measured]]) -> Table:
    """The times in microseconds, and how many times as fast the pass is."""
    table = Table(
        "What the compiler writes, one thread",
        ("function", "KiB", "eager us", "pass us", "kernel us", "inductor us", "over eager",
         "over inductor", "error"),
    )  # fmt: skip
    for name, rows, result in results:
        us = {way: 1e3 * ms for way, ms in result.ms.items()}
        error = max(1.0, result.pass_error) / max(1.0, result.eager_error)
        kernel = f"{us['kernel']:.2f}" if "kernel" in us else "–"
        table.rows.append((
            name, str(rows * WIDTH * 4 // 1024), f"{us['eager']:.2f}", f"{us['pass']:.2f}", kernel,
            f"{us['inductor']:.2f}",
            f"{us['eager'] / us['pass']:.2f}", f"{us['inductor'] / us['pass']:.2f}", f"{error:.1f}",
        ))  # fmt: skip
    return table


def main() -> None:
    """Measure the functions that are named."""
    torch.set_num_threads(1)
    names = tuple(sys.argv[1:]) or ("",)
    results = []
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        for number, case in enumerate(case for case in CASES if case.name.startswith(names)):
            for rows in ROWS:
                measured = measure(case, rows, Path(name) / f"{number}-{rows}")
                results.append((case.name, rows, measured))
                print(case.name, rows, {way: round(1e3 * ms, 2) for way, ms in measured.ms.items()},
                      flush=True)  # fmt: skip
    print_table(Console(width=140), table_of(results))


if __name__ == "__main__":
    main()
