"""Soundness of tasks: on fresh inputs a graph gives numbers, and they do not hang on rounding."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch

from passnet.errors import GraphError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph
from passnet.graph.values.cost import torch_arguments
from passnet.inductor.compiler import compile_with_inductor
from passnet.judge.score.tolerance import smallest_t
from passnet.judge.worker.float64 import run_exact
from passnet_audit.suites.wrong_programs import value_of

NUM_DRAWS, MANY_DRAWS = 3, 16
FEW_NUMBERS = 2**16
"""Draws of fresh inputs in which NaN is looked for, each with the next seed. There are more where a
graph reads few numbers, as the sign of one of them may decide there."""
MAX_NAN_SHARE = 0.01
"""Largest share of NaN in an output. Infinities equal themselves, and masks hold them."""
MUST_AGREE_AT = -3
"""The level at which a compiler must agree with float64 where eager PyTorch does."""

Compiler: TypeAlias = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[..., Any]]
"""Compiles a graph for these arguments."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The output that makes a graph unsound, on the fresh inputs of a seed.

    `not_a_number`: more than 1 % of it is NaN. `ill_conditioned`: eager PyTorch agrees with float64
    at t = -3, but Inductor does not.
    """

    name: Literal["not_a_number", "ill_conditioned"]
    place: str
    seed: int


def find_fault(
    graph: Graph, seed: int = 0, compiler: Compiler | None = compile_with_inductor
) -> Fault | None:
    """Return the first fault of a graph on the CPU; without a compiler, look for NaN only.

    Rounding is judged on the first draw, where eager PyTorch agrees with float64 at t = -3 and no
    stricter level, and not where the compiler refuses the graph.

    Raises:
        GraphError: the graph does not run.
    """
    num_numbers = sum(spec.num_elements for spec in graph.tensors)
    seeds = range(seed, seed + (MANY_DRAWS if num_numbers < FEW_NUMBERS else NUM_DRAWS))
    module = build(graph.program)
    usual = [_outputs(module.forward, graph, draw) for draw in seeds]
    for draw, outputs in zip(seeds, usual, strict=True):
        for number, output in outputs.items():
            if output.numel() and output.isnan().double().mean() > MAX_NAN_SHARE:
                return Fault("not_a_number", f"output {number}", draw)
    if compiler is None:
        return None
    with suppress(GraphError), torch.no_grad():
        right = _outputs(lambda *each: run_exact(module, each), graph, seed)
        near = [at for at, output in usual[0].items() if _level(output, right[at]) == MUST_AGREE_AT]
        if not near:
            return None
        with boundary(GraphError, "compiling the graph"):
            compiled = compiler(build(graph.program), torch_arguments(graph, "fresh", seed))
        others = _outputs(compiled, graph, seed)
        for number in near:
            level = _level(others[number], right[number])
            if level is None or level > MUST_AGREE_AT:
                return Fault("ill_conditioned", f"output {number}", seed)
    return None


def _outputs(call: Callable[..., Any], graph: Graph, seed: int) -> dict[int, torch.Tensor]:
    """Return the tensors among the outputs of a call on fresh inputs, by their number."""
    arguments = torch_arguments(graph, "fresh", seed)
    with torch.no_grad(), boundary(GraphError, "running the graph"):
        torch.manual_seed(0)
        outputs = call(*arguments)
    return {at: value for at, value in enumerate(outputs) if isinstance(value, torch.Tensor)}


def _level(actual: torch.Tensor, exact: torch.Tensor) -> int | None:
    if actual.shape != exact.shape:
        return None
    value, right = value_of("", actual), value_of("", exact.to(actual.dtype))
    assert value.array is not None and right.array is not None, "both are tensors"
    return smallest_t(value.array, right.array, value.dtype)
