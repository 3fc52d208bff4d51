"""A task whose answers are NaN, or hang on rounding, is unsound until domains make it sound."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.cost import torch_arguments
from passnet.inductor.compiler import compile_in_this_process, compile_with_inductor, keep_headers
from passnet.judge.task import TaskGraph
from passnet_audit.suites.admission import AdmissionPlan, admit_graph, admit_in_domain
from passnet_audit.suites.domains import declare
from passnet_audit.suites.soundness import Fault, find_fault


def graph_of(*lines: str, shape: tuple[int, ...] = (64, 64), dtype: str = "float32") -> Graph:
    body = "\n".join(f"        {line}" for line in lines)
    text = f"class GraphModule(torch.nn.Module):\n    def forward(self, x, y):\n{body}\n"
    program = parse_program(f"import torch\n\n\n{text}        return (v,)\n")
    return Graph(program, tuple(TensorSpec(name, shape, dtype) for name in "xy"))


ROOT_OF_A_MEAN = graph_of(
    "a = x.mean(-1, keepdim=True)", "b = a + 1e-5", "c = torch.rsqrt(b)", "v = y * c"
)
ANGLE_OF_A_PRODUCT = graph_of("a = torch.matmul(x, y)", "v = torch.acos(a)")
ANGLE = graph_of("a = x * 1.0001", "b = torch.acos(a)", "v = b + y")
NEAR = graph_of(
    "a = x * 0.05", "b = y * 0.05", "c = a + b", "v = c - a", shape=(64, 64), dtype="bfloat16"
)
"""A sum whose rounding in bfloat16 lets eager PyTorch agree with float64 at t = -3 only."""
ROOT_OF_A_QUOTIENT = graph_of("a = torch.log(y)", "b = a.abs()", "c = x / b", "v = torch.sqrt(c)")


def in_other_words(
    module: torch.fx.GraphModule, _: Sequence[Any], size: float = 2e-7
) -> Callable[..., Any]:
    """A compiler that rounds elsewhere: its kernels see arguments that are off by a last bit."""

    def call(*arguments: Any) -> Any:
        noise = torch.Generator().manual_seed(1)
        return module(*[x * (1 + size * torch.randn(x.shape, generator=noise)) for x in arguments])

    return call


def division_by_a_sum() -> Graph:
    """A quotient whose divisor in one row is 10,000 times as large as its rounding."""
    [_, values] = torch_arguments(graph_of("v = x + y"), "fresh", 0)
    assert isinstance(values, torch.Tensor)
    errors = (values.sum(-1).double() - values.double().sum(-1)).abs()
    row = int(errors.argmax())
    near = (values[row].double().sum() - 1e4 * errors[row]).float().item()
    return graph_of("a = y.sum(-1, keepdim=True)", f"b = a - {near!r}", "v = x / b")


@pytest.mark.parametrize("graph", [ROOT_OF_A_MEAN, ANGLE_OF_A_PRODUCT, ANGLE])
def test_a_graph_that_gives_nan_on_fresh_inputs_is_unsound(graph: Graph) -> None:
    assert find_fault(graph, compiler=None) == Fault("not_a_number", "output 0", 0)


def test_a_division_by_a_sum_around_zero_hangs_on_rounding() -> None:
    quotient = division_by_a_sum()
    compiler = partial(in_other_words, size=1e-5)
    assert find_fault(quotient, compiler=compiler) == Fault("ill_conditioned", "output 0", 0)
    assert find_fault(declare(quotient, {"y": "positive"}), compiler=compiler) is None


def test_a_compiler_is_asked_where_eager_pytorch_just_agrees_with_float64() -> None:
    assert find_fault(NEAR, compiler=in_other_words) is None
    wrong = partial(in_other_words, size=1.0)
    assert find_fault(NEAR, compiler=wrong) == Fault("ill_conditioned", "output 0", 0)
    assert find_fault(graph_of("v = x + y"), compiler=wrong) is None


def test_few_values_that_are_no_numbers_are_no_fault_and_infinities_never_are() -> None:
    few = graph_of("a = x + 2.6", "b = torch.sqrt(a)", "v = b + y")
    assert find_fault(few, compiler=None) is None
    infinite = graph_of("a = x > 0", "v = y.masked_fill(a, float('-inf'))")
    assert find_fault(infinite, compiler=None) is None


def test_what_a_compiler_refuses_is_not_held_against_a_graph() -> None:
    def refusing(*_: Any) -> Any:
        raise RuntimeError("not this one")

    assert find_fault(NEAR, compiler=refusing) is None


@pytest.mark.slow
def test_inductor_is_asked_by_default() -> None:
    compile_in_this_process()
    keep_headers()
    asked = []

    def inductor(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Any:
        compiled = compile_with_inductor(module, arguments)
        asked.append(compiled)
        return lambda *values: [value + 1 for value in compiled(*values)]

    assert find_fault(NEAR) is None
    assert find_fault(NEAR, compiler=inductor) == Fault("ill_conditioned", "output 0", 0)
    assert len(asked) == 1


QUICK = AdmissionPlan(compiles=False)


@pytest.mark.parametrize(
    ("graph", "domains"),
    [
        (ROOT_OF_A_MEAN, {"x": "positive"}),
        (ANGLE_OF_A_PRODUCT, {"x": "unit_vectors", "y": "unit_vectors"}),
        (ANGLE, {"x": "unit"}),
        (
            graph_of("a = torch.log(y)", "b = a.abs()", "c = x / b", "v = torch.sqrt(c)"),
            {"x": "positive"},
        ),
    ],
)
def test_an_unsound_graph_is_admitted_in_the_smallest_domains_that_help(
    graph: Graph, domains: dict[str, str]
) -> None:
    candidate = TaskGraph("task", "graph", graph)
    as_it_is = admit_graph(candidate, QUICK)
    assert as_it_is.texts() == ("not_a_number (output 0)",) and not as_it_is.is_admitted
    admission = admit_in_domain(candidate, QUICK)
    assert (admission.domains, admission.fault, admission.is_admitted) == (domains, None, True)


def test_a_graph_that_no_domain_makes_sound_stays_unsound() -> None:
    graph = graph_of("a = x - x", "b = a - 1.0", "c = torch.sqrt(b)", "v = c + y")
    admission = admit_in_domain(TaskGraph("task", "graph", graph), QUICK)
    assert admission.fault is not None and not admission.domains and not admission.is_admitted
    assert admission.texts()[-1] == "not_a_number (output 0)"
