"""Soundness of tasks: on fresh inputs a graph gives numbers, and they do not hang on rounding.

Ops propose domains of arguments in which an unsound graph may be sound.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch

from passnet.core.records.dtypes import is_float
from passnet.errors import GraphError, boundary
from passnet.graph.fx.build import build
from passnet.graph.fx.operators import name_set
from passnet.graph.spec import Graph, ValueDomain, refs
from passnet.graph.values.cost import torch_arguments
from passnet.graph.values.effects import last_name
from passnet.graph.values.uses import ops_with_sources
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

_OPERAND_DOMAINS: dict[str, tuple[int, tuple[ValueDomain, ...]]] = {
    **dict.fromkeys(
        name_set("acos asin atanh arccos arcsin arctanh"), (0, ("unit", "unit_vectors"))
    ),
    **dict.fromkeys(
        name_set("sqrt rsqrt log log2 log10 log1p pow float_power reciprocal"), (0, ("positive",))
    ),
    **dict.fromkeys(name_set("div truediv"), (1, ("positive",))),
}
"""By the last name of a call: the operand that not every number suits, and domains that may."""

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


def proposals(graph: Graph) -> list[dict[str, ValueDomain]]:
    """Return domains that may suit the ops of a graph, with the fewest arguments first."""
    can_have = {spec.name for spec in graph.tensors if is_float(spec.dtype) and spec.shape}
    together: dict[str, ValueDomain] = {}
    choices: list[dict[str, ValueDomain]] = []
    for op, _, made in ops_with_sources(graph):
        position, domains = _OPERAND_DOMAINS.get(last_name(op.target).strip("_"), (0, ()))
        names = refs(op.args[position]) if op.args[position:] else ()
        sources = sorted(can_have & {source for name in names for source in made.get(name, ())})
        for domain in domains if sources else ():
            choices += [*({name: domain} for name in sources), dict.fromkeys(sources, domain)]
            together = together | choices[-1]
            choices.append(together)
    return sorted({frozenset(each.items()): each for each in choices}.values(), key=len)
