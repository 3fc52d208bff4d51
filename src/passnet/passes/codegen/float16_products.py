"""Products and convolutions of float16 in float32, on processors without arithmetic in float16.

There eager torch converts number by number: on an AMD EPYC (Turin) it takes up to 35 times as long
as converting the arguments as a whole, multiplying in float32 and rounding the result, which is the
same number or its neighbour. Small products, and those of a few rows with a matrix of weights,
are faster as they are. Attention and transposed convolutions are left out: eager torch rounds
within them, so that what is nearer to the truth is too far from it.
"""

from collections.abc import Mapping, Sequence
from math import prod

from passnet.core.hardware import multiplies_float16
from passnet.graph.spec import Graph, Op, Ref, TensorSpec, refs
from passnet.graph.text.render import render_statement
from passnet.passes.codegen.folder_text import pattern_imports, pattern_text
from passnet.passes.codegen.products import LINEARS, MATMULS, argument_forms
from passnet.passes.files import Files

MODULES = ("torch", "torch.nn.functional")
CONVOLUTIONS = tuple(f"{module}.conv{size}d" for module in MODULES for size in (1, 2, 3))
PLAIN_PRODUCTS = (*MATMULS, "torch.mm", "torch.bmm")
ADDED_PRODUCTS = ("torch.addmm", "torch.baddbmm")

LEAST_MULTIPLICATIONS = 2**15
"""From so many on, a product is worth converting its arguments, which takes 3 us or more."""

LEAST_ROWS = 8
"""For fewer rows than this, converting a matrix of weights takes longer than the product."""

PASS = '''\
"""A product of float16 that is computed in float32, for {num_forms} forms of its arguments."""

import torch
{imports}

def pattern({params}):
{pattern}


def replacement_args({params}):
    return {params},


FORMS = {{
{forms}
}}


def guard({params}):  # in other forms it may not be worth while
    tensors = [given for given in ({params},) if isinstance(given, torch.Tensor)]
    return tuple((tuple(map(int, tensor.shape)), tensor.dtype) for tensor in tensors) in FORMS


def replacement({params}):
{body}


def replacement_func():
    return replacement
'''


def is_slow_product(op: Op, specs: Mapping[str, TensorSpec]) -> bool:
    """Whether an op is a product or convolution of float16 that is faster in float32 on this
    machine; `specs` are those of values.
    """
    read = [specs[arg.name] for arg in _tensors(op) if arg.name in specs]
    made = specs.get(op.output or "")
    if made is None or len(read) < 2 or read[0].dtype != "float16" or multiplies_float16():
        return False
    if {spec.dtype for spec in read} != {"float16"}:
        return False
    return num_multiplications(op.target, read, made) >= LEAST_MULTIPLICATIONS


def num_multiplications(target: str, read: Sequence[TensorSpec], made: TensorSpec) -> int:
    """How many pairs of numbers a product multiplies, whose tensors are given in their order; 0 for
    what is no product, and for one of a few rows with a matrix of weights.
    """
    value, weight = read[:2]
    if target in LINEARS:
        rows = prod(value.shape[:-1])
        return rows * prod(weight.shape) if rows >= LEAST_ROWS else 0
    if target in PLAIN_PRODUCTS:
        return prod(made.shape) * value.shape[-1]
    if target in ADDED_PRODUCTS:
        return prod(made.shape) * weight.shape[-1]
    if target in CONVOLUTIONS:
        return prod(made.shape) * prod(weight.shape[1:])
    return 0


def float16_passes(cuts: Sequence[Graph]) -> Files:
    """The files of the passes for some such ops, each a graph of its own; one pass for all that are
    written alike.
    """
    by_pattern: dict[str, list[Graph]] = {}
    for cut in cuts:
        by_pattern.setdefault(pattern_text(cut), []).append(cut)
    return {
        f"Float16Product{number}.py": _pass_text(pattern, group)
        for number, (pattern, group) in enumerate(by_pattern.items())
    }


def _pass_text(pattern: str, cuts: Sequence[Graph]) -> str:
    first, forms = cuts[0], argument_forms(cuts)
    [statement] = first.program.body
    [made] = [name for arg in first.program.outputs for name in refs(arg)]
    halves = [spec.name for spec in first.tensors if spec.dtype == "float16"]
    lines = [
        *(f"{name} = {name}.float()" for name in halves),
        render_statement(statement),
        f"return {made}.half()",
    ]
    return PASS.format(
        num_forms=len(forms),
        imports="".join(f"{line}\n" for line in pattern_imports(render_statement(statement))),
        params=", ".join(param.name for param in first.program.params),
        pattern="\n".join(f"    {line}" for line in pattern.splitlines()),
        forms="\n".join(f"    ({form},)," for form in forms),
        body="\n".join(f"    {line}" for line in lines),
    )


def _tensors(op: Op) -> list[Ref]:
    values = [*op.args, *dict(op.kwargs).values()]
    return [value for value in values if isinstance(value, Ref)]
