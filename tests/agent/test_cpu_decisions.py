"""What Inductor is had to decide otherwise for a CPU: it does, and kernels compute the same."""

import re

import pytest
import torch

from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, Program
from passnet.inductor.cpu_decisions import deciding_for_one_core
from passnet.inductor.generated_code import generate
from tests.agent.generated import run, specs
from tests.graph.programs import graph_of, program_of

pytestmark = pytest.mark.xdist_group("agent")


@pytest.mark.parametrize(
    "costly", ["torch.nn.functional.gelu(a)", "torch.cos(a)", "torch.pow(a, b)"]
)
def test_a_costly_result_that_is_used_twice_is_computed_once(costly: str) -> None:
    def computed(program: Program) -> int:
        """In how many places of the code: in vectors, and in what is left of a row."""
        code = generate(graph_of(program, (6, 44)))
        names = r"\b(?:erf|cos|pow)\("
        return sum(len(re.findall(names, kernel.text)) for kernel in code.kernels)

    once = program_of(f"x = {costly}", returns="(x,)")
    norm = "y = torch.nn.functional.layer_norm(x, (44,))"
    twice = program_of(f"x = {costly}", norm, returns="(y,)")
    assert computed(once) == computed(twice) > 0
    inputs = [torch.rand(6, 44) + 0.5 for _ in range(2)]
    (result,) = run(graph_of(twice, (6, 44)), inputs)
    torch.testing.assert_close(result, build(twice)(*inputs)[0])


NORMS = {
    "layer_norm": ("torch.nn.functional.layer_norm(a, (1500,))", (3, 1500)),
    "of one row": ("torch.nn.functional.layer_norm(a, (3, 1500))", (3, 1500)),
    "instance_norm": ("torch.nn.functional.instance_norm(a)", (2, 3, 40, 41)),
    "group_norm": ("torch.nn.functional.group_norm(a, 2)", (2, 4, 30, 31)),
    "variance": ("torch.var(a, -1)", (3, 1500)),
    "of columns": ("torch.std(a, 0)", (1500, 3)),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", NORMS)
def test_a_variance_takes_two_steps(name: str, dtype: str) -> None:
    text, shape = NORMS[name]
    program = program_of(f"y = {text}", params="a", returns="(y,)")
    graph = Graph(program, specs(a=(shape, dtype)))
    assert not any("elford" in kernel.text for kernel in generate(graph).kernels)
    given = (torch.randn(shape) * 2 + 30).to(getattr(torch, dtype))
    (result,) = run(graph, [given], emulate_precision_casts=True)
    torch.testing.assert_close(result, build(program)(given)[0])
    given.view(-1)[5] = torch.inf
    (result,) = run(graph, [given], emulate_precision_casts=True)
    torch.testing.assert_close(result, build(program)(given)[0], equal_nan=True)


def sums(kind: str, shape: tuple[int, ...], dtype: str = "float32") -> Graph:
    program = program_of(f"y = torch.{kind}(a, 0)", params="a", returns="(y,)")
    return Graph(program, specs(a=(shape, dtype)))


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [
        ((640, 256), 40),  # of 16 rows
        ((196, 4096), 14),  # of 14, as no number of rows from 8 on divides it sooner
        ((197, 4096), 25),  # of 8, the last not full, as it is a prime number
        ((31, 4096), 1),  # too few rows
        ((4096,), 1),  # together in memory
    ],
)
@pytest.mark.parametrize("kind", ["sum", "amax"])
def test_columns_are_reduced_in_blocks_of_rows(
    kind: str, shape: tuple[int, ...], blocks: int
) -> None:
    graph = sums(kind, shape)
    code = generate(graph)
    num_columns = shape[1] if len(shape) > 1 else 1
    assert max(count for _, count in code.buffers.values()) == num_columns * blocks
    for dtype in ("float32", "bfloat16"):
        given = torch.randn(shape).to(getattr(torch, dtype))
        (result,) = run(sums(kind, shape, dtype), [given])
        torch.testing.assert_close(result, build(graph.program)(given)[0], rtol=2e-5, atol=2e-4)


def test_blocks_go_over_several_axes_and_keep_what_is_not_a_number() -> None:
    program = program_of("y = a * b", "z = y.mean((1, 2))", "w = y.amax(1)", returns="(z, w)")
    graph = graph_of(program, (3, 35, 20, 70))
    inputs = [torch.randn(3, 35, 20, 70) for _ in range(2)]
    inputs[0][1, 30, 3, 5] = torch.nan
    for result, expected in zip(run(graph, inputs), build(program)(*inputs), strict=True):
        assert result.isnan().any()
        torch.testing.assert_close(result, expected, equal_nan=True)


def test_inductor_decides_as_ever_afterwards() -> None:
    from torch._inductor import choices, ir, lowering
    from torch._inductor.codegen.cpp import CppScheduling

    def decisions() -> list[object]:
        factor = choices.InductorChoices.reduction_split_factor
        reuse = ir.StorageBox.should_realize_on_reuse
        return [factor, reuse, ir.DeviceProperties, lowering.use_two_step_variance,
                CppScheduling.backend_features]  # fmt: skip

    usual = decisions()
    with deciding_for_one_core():
        assert not any(mine is theirs for mine, theirs in zip(decisions(), usual, strict=True))
    assert all(mine is theirs for mine, theirs in zip(decisions(), usual, strict=True))
