"""Graphs, and the kernels that are generated for them, called in this process."""

import torch

from passnet.data.mine.cut import inferred_specs
from passnet.graph.spec import Graph, TensorSpec
from passnet.inductor.generated_code import generate
from passnet.passes import cpp
from passnet.passes.codegen.cpp_source import cpp_source
from passnet.passes.codegen.eager_steps import in_eager_steps
from tests.graph.programs import program_of

SILU = program_of("x = torch.nn.functional.silu(a)", "y = x * b", returns="(y,)")
NORM = program_of(
    "x = a + b",
    "y = torch.nn.functional.layer_norm(x, (40,), c, d, 1e-05)",
    params="a, b, c, d",
    returns="(x, y)",
)


def specs(**forms: tuple[tuple[int, ...], str]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(name, shape, dtype) for name, (shape, dtype) in forms.items())


def run(graph: Graph, inputs: list[torch.Tensor], **options: object) -> list[torch.Tensor]:
    """The results of the kernels that are generated for a graph, called in this process."""
    code = generate(in_eager_steps(graph, inferred_specs(graph)), options=options)
    results = [
        torch.empty_strided(form.shape, form.stride, dtype=getattr(torch, form.dtype))
        for _, form in code.outputs
    ]
    kernel = cpp.kernel(cpp_source(code), "launch", "p" * (len(inputs) + len(results)))
    kernel(*(tensor.data_ptr() for tensor in (*inputs, *results)))
    return results
