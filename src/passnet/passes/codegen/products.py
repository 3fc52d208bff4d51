"""Passes for matrix products and convolutions that run faster than in eager torch.

- float32 products with a weight matrix, by oneDNN's op: up to twice as fast as torch's BLAS. Its
  epilogues are not used, as they change NaN and -inf.
- float16 products and convolutions, in float32, on processors without float16 arithmetic: up to 35
  times as fast (AMD EPYC Turin). Attention and transposed convolutions are left out, as eager
  torch rounds within them.
"""

from collections.abc import Mapping, Sequence
from math import prod

from passnet.core.hardware import multiplies_float16
from passnet.graph.spec import Arg, Graph, Op, Ref, TensorSpec, refs
from passnet.graph.text.render import render_arg, render_statement
from passnet.inductor.generated_code import contiguous
from passnet.passes.codegen.pass_text import form_key, pass_text, pattern_imports, pattern_text
from passnet.passes.files import Files
from passnet.passes.folder import LIST_FILE

LINEARS = ("torch._C._nn.linear", "torch.nn.functional.linear")
MATMULS = ("torch.matmul", "Tensor.matmul", "operator.matmul")
PLAIN_PRODUCTS = (*MATMULS, "torch.mm", "torch.bmm")
ADDED_PRODUCTS = ("torch.addmm", "torch.baddbmm")
CONVOLUTIONS = tuple(
    f"{module}.conv{size}d" for module in ("torch", "torch.nn.functional") for size in (1, 2, 3)
)

LEAST_PRODUCTS = 2**20
"""Fewest multiplications for which a product is given to oneDNN, whose call takes 10 us."""

LEAST_MULTIPLICATIONS = 2**15
"""Fewest multiplications for which converting the arguments, 3 us or more, is worth it."""

LEAST_ROWS = 8
"""Fewest rows for which converting a matrix of weights takes less time than it saves."""


def is_product(op: Op, specs: Mapping[str, TensorSpec]) -> bool:
    """Return whether oneDNN may compute an op faster; `specs` describe the graph's values."""
    operands = [specs.get(arg.name) if isinstance(arg, Ref) else None for arg in op.args[:2]]
    if op.target not in (*LINEARS, *MATMULS) or len(operands) < 2 or op.output is None:
        return False
    value, weight = operands
    if value is None or weight is None or len(weight.shape) != 2 or not value.shape:
        return False
    if {value.dtype, weight.dtype} != {"float32"}:
        return False
    return prod(value.shape[:-1]) * prod(weight.shape) >= LEAST_PRODUCTS


def product_folder(graphs: Sequence[Graph]) -> Files:
    """Return the pass folder for graphs of one and the same product, empty for any others."""
    patterns = {pattern_text(graph) for graph in graphs}
    if len(patterns) > 1 or not all(map(_is_one_product, graphs)):
        return {}
    [pattern] = patterns
    call = f"torch.ops.mkldnn._linear_pointwise({_call(graphs[0].program.ops[0])}, "
    strides = {
        form_key(*graph.tensors): [contiguous(spec.shape) for spec in graph.tensors]
        for graph in graphs
    }
    text = pass_text(
        "Products that oneDNN computes",
        pattern,
        [param.name for param in graphs[0].program.params],
        dict.fromkeys(strides),
        [f'return {call}"none", [], None)'],
        strides,
    )
    return {"Product0.py": text, LIST_FILE: '["Product0"]'}


def _is_one_product(graph: Graph) -> bool:
    specs = {spec.name: spec for spec in graph.tensors}
    ops = graph.program.ops
    return len(graph.program.body) == len(ops) == 1 and is_product(ops[0], specs)


def _call(op: Op) -> str:
    """Return the value, the weight as rows of outputs, and the bias, as text."""
    value, weight = (render_arg(arg) for arg in op.args[:2])
    if op.target in MATMULS:
        return f"{value}, {weight}.t(), None"
    bias: Arg = op.args[2] if len(op.args) > 2 else dict(op.kwargs).get("bias")
    return f"{value}, {weight}, {render_arg(bias)}"


def is_slow_product(
    op: Op, specs: Mapping[str, TensorSpec], has_float16: bool | None = None
) -> bool:
    """Return whether an op is a float16 product that is computed faster in float32.

    `specs` describe its graph's values; without `has_float16`, this processor is asked for float16
    arithmetic.
    """
    tensors = [value for value in (*op.args, *dict(op.kwargs).values()) if isinstance(value, Ref)]
    operands = [specs[tensor.name] for tensor in tensors if tensor.name in specs]
    result = specs.get(op.output or "")
    if has_float16 is None:
        has_float16 = multiplies_float16()
    if result is None or len(operands) < 2 or has_float16:
        return False
    if {spec.dtype for spec in operands} != {"float16"}:
        return False
    return num_multiplications(op.target, operands, result) >= LEAST_MULTIPLICATIONS


def num_multiplications(target: str, operands: Sequence[TensorSpec], result: TensorSpec) -> int:
    """Return how many pairs a product multiplies; 0 for other ops and few rows with a weight."""
    value, weight = operands[:2]
    if target in LINEARS:
        rows = prod(value.shape[:-1])
        return rows * prod(weight.shape) if rows >= LEAST_ROWS else 0
    if target in PLAIN_PRODUCTS:
        return prod(result.shape) * value.shape[-1]
    if target in ADDED_PRODUCTS:
        return prod(result.shape) * weight.shape[-1]
    if target in CONVOLUTIONS:
        return prod(result.shape) * prod(weight.shape[1:])
    return 0


def float16_passes(cuts: Sequence[Graph]) -> Files:
    """Return the passes for slow products, each a graph; cuts with the same text share a pass."""
    by_pattern: dict[str, list[Graph]] = {}
    for cut in cuts:
        by_pattern.setdefault(pattern_text(cut), []).append(cut)
    return {
        f"Float16Product{number}.py": _float16_text(pattern, group)
        for number, (pattern, group) in enumerate(by_pattern.items())
    }


def _float16_text(pattern: str, cuts: Sequence[Graph]) -> str:
    [statement] = map(render_statement, cuts[0].program.body)
    [result] = [name for arg in cuts[0].program.outputs for name in refs(arg)]
    halves = [spec.name for spec in cuts[0].tensors if spec.dtype == "float16"]
    body = [*(f"{name} = {name}.float()" for name in halves), statement, f"return {result}.half()"]
    return pass_text(
        "Products of float16 that are computed in float32",
        pattern,
        [param.name for param in cuts[0].program.params],
        dict.fromkeys(form_key(*cut.tensors) for cut in cuts),
        body,
        imports="\n".join(["import torch", *pattern_imports(statement)]),
    )
