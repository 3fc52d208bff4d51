"""Products of a matrix of weights in float32, which oneDNN computes by an op of torch.

Eager torch gives them to the BLAS that it was built with, which on some processors takes twice as
long. The weight is read as it lies, so that it may be updated in place. An epilogue is left to
other passes: oneDNN makes 0 of NaN in a ReLU, and another value of -inf in a GELU.
"""

from collections.abc import Mapping, Sequence
from math import prod

from passnet.graph.spec import Arg, Graph, Op, Ref, TensorSpec
from passnet.graph.text.render import render_arg
from passnet.passes.codegen.folder_text import pattern_text
from passnet.passes.files import Files
from passnet.passes.folder import LIST_FILE

LINEARS = ("torch._C._nn.linear", "torch.nn.functional.linear")
MATMULS = ("torch.matmul", "Tensor.matmul", "operator.matmul")

LEAST_PRODUCTS = 2**20
"""Multiplications from which on a product may be given to oneDNN, whose call takes 10 us."""

PASS = '''\
"""A product that oneDNN computes, for {num_forms} forms of its arguments."""

import torch


def pattern({params}):
{pattern}


def replacement_args({params}):
    return {params},


FORMS = {{
{forms}
}}


def guard({params}):  # in other forms it was not judged
    tensors = [given for given in ({params},) if isinstance(given, torch.Tensor)]
    given = tuple((tuple(map(int, tensor.shape)), tensor.dtype) for tensor in tensors)
    return given in FORMS and all(tensor.is_contiguous() for tensor in tensors)


def replacement({params}):
    return torch.ops.mkldnn._linear_pointwise({call}, "none", [], None)


def replacement_func():
    return replacement
'''


def is_product(op: Op, specs: Mapping[str, TensorSpec]) -> bool:
    """Whether an op is a product that oneDNN may compute faster; `specs` are those of values."""
    read = [specs.get(arg.name) if isinstance(arg, Ref) else None for arg in op.args[:2]]
    if op.target not in (*LINEARS, *MATMULS) or len(read) < 2 or op.output is None:
        return False
    value, weight = read
    if value is None or weight is None or len(weight.shape) != 2 or not value.shape:
        return False
    if {value.dtype, weight.dtype} != {"float32"}:
        return False
    return prod(value.shape[:-1]) * prod(weight.shape) >= LEAST_PRODUCTS


def product_folder(graphs: Sequence[Graph]) -> Files:
    """The pass folder for graphs of one and the same product; empty where they are no such."""
    patterns = {pattern_text(graph) for graph in graphs}
    if len(patterns) > 1 or not all(map(_is_one_product, graphs)):
        return {}
    first, forms = graphs[0], argument_forms(graphs)
    [pattern] = patterns
    text = PASS.format(
        num_forms=len(forms),
        params=", ".join(param.name for param in first.program.params),
        pattern="\n".join(f"    {line}" for line in pattern.splitlines()),
        forms="\n".join(f"    ({form},)," for form in forms),
        call=_call(first.program.ops[0]),
    )
    return {"Product0.py": text, LIST_FILE: '["Product0"]'}


def argument_forms(graphs: Sequence[Graph]) -> list[str]:
    """The shapes and dtypes of the arguments of graphs as text, each once."""
    return list(
        dict.fromkeys(
            ", ".join(f"({spec.shape}, torch.{spec.dtype})" for spec in graph.tensors)
            for graph in graphs
        )
    )


def _is_one_product(graph: Graph) -> bool:
    specs = {spec.name: spec for spec in graph.tensors}
    ops = graph.program.ops
    return len(graph.program.body) == len(ops) == 1 and is_product(ops[0], specs)


def _call(op: Op) -> str:
    """The value, the weight as rows of outputs, and the bias, as text."""
    value, weight = (render_arg(arg) for arg in op.args[:2])
    if op.target in MATMULS:
        return f"{value}, {weight}.t(), None"
    bias: Arg = op.args[2] if len(op.args) > 2 else dict(op.kwargs).get("bias")
    return f"{value}, {weight}, {render_arg(bias)}"
