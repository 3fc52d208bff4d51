"""What a pattern says is recorded call by call, and what cannot be recorded is refused by name."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx

from passnet.errors import PassError
from passnet.graph.fx.operators import IN_PLACE
from passnet.passes.match.pattern import make_pass, make_pattern
from passnet.passes.match.trace import trace

F = torch.nn.functional


def targets(function: Callable[..., Any]) -> list[Any]:
    """What the calls of a function's graph call."""
    calls = ("call_function", "call_method")
    return [node.target for node in trace(function, "t").nodes if node.op in calls]


def as_tensor(x: Any, y: Any) -> Any:
    return x + y


@pytest.mark.parametrize("name", IN_PLACE.values())
def test_an_augmented_assignment_is_recorded_in_place(name: str) -> None:
    function = getattr(operator, name)
    assert targets(lambda x, y: function(x, y)) == [function]


def test_the_name_that_was_assigned_to_stands_for_the_result() -> None:
    def pattern(x, y):
        x += y
        return x * 2

    first, second = (node for node in trace(pattern, "t").nodes if node.op == "call_function")
    assert (first.target, second.args[0]) == (operator.iadd, first)


def test_an_index_assignment_is_recorded() -> None:
    def pattern(x, y):
        x[:, 0] = y
        return x.relu()

    assert targets(pattern) == [operator.setitem, "relu"]


def test_unpacking_is_recorded_as_indexing() -> None:
    def pattern(x):
        a, b = x.chunk(2, dim=-1)
        return a * b

    assert targets(pattern) == ["chunk", operator.getitem, operator.getitem, operator.mul]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x + torch.arange(8),
        lambda x: x + torch.arange(0, 8, 2, dtype=torch.int64),
        lambda x: x + torch.zeros((2, 8)),
        lambda x: x + torch.full((1,), 2.0),
        lambda x: x + torch.tensor(2.0),
    ],
)
def test_a_factory_function_is_recorded(make: Callable[..., Any]) -> None:
    factory, addition = targets(make)
    assert factory in (torch.arange, torch.zeros, torch.full, torch.tensor)
    assert addition is operator.add


def test_a_factory_function_takes_a_parameter_of_the_pattern() -> None:
    assert targets(lambda x, n: x + torch.arange(n)) == [torch.arange, operator.add]
    assert targets(lambda x, n: x + torch.zeros((n, 2))) == [torch.zeros, operator.add]


def test_tracing_leaves_no_trace_behind() -> None:
    trace(lambda x: x + torch.arange(8), "t")
    assert torch.arange(2).tolist() == [0, 1]


def collects(*values):
    return values[0]


def takes_options(x, **options):
    return x.relu()


def takes_keyword(x, *, scale):
    return x * scale


@pytest.mark.parametrize(
    ("function", "offender"),
    [(collects, r"\*values"), (takes_options, r"\*\*options"), (takes_keyword, "scale")],
)
def test_parameters_without_a_position_are_refused(
    function: Callable[..., Any], offender: str
) -> None:
    with pytest.raises(PassError, match=rf"Fuse.pattern must .*, {offender} is none"):
        make_pattern("Fuse", function)


def raises(x):
    raise KeyError("lost")


def branches(x):
    return x.relu() if x.sum() > 0 else x


def imports(x):
    import no_such_module

    return no_such_module.run(x)


@pytest.mark.parametrize(
    ("function", "words"),
    [(raises, "KeyError: 'lost'"), (branches, "control flow"), (imports, "no_such_module")],
)
def test_a_pattern_that_raises_gives_one_error_that_names_it(
    function: Callable[..., Any], words: str
) -> None:
    with pytest.raises(PassError, match=f"tracing FuseNorm.pattern: .*{words}"):
        make_pattern("FuseNorm", function)


@pytest.mark.parametrize("thing", [3, None, "relu", torch.nn.ReLU()])
def test_a_pattern_that_is_no_function_is_refused_by_name(thing: Any) -> None:
    with pytest.raises(PassError, match="Fuse.pattern"):
        make_pattern("Fuse", thing)


def test_replacement_args_that_raise_give_one_error_that_names_them() -> None:
    def replacement_args(x):
        return x.missing + undefined  # noqa: F821

    with pytest.raises(PassError, match="tracing Fuse.replacement_args: NameError"):
        make_pass("Fuse", lambda x: x.relu(), replacement_args, lambda: as_tensor)


def test_a_graph_module_is_taken_as_it_is() -> None:
    module = torch.fx.symbolic_trace(lambda x, y: F.relu(x + y))
    pattern = make_pattern("Fuse", module)
    assert all(node.graph is module.graph for node in pattern.calls)
    assert [node.name for node in pattern.params] == ["x", "y"]
    assert [call.label for call in pattern.calls.values()] == [
        "operator.add",
        "torch.nn.functional.relu",
    ]


def test_a_graph_module_with_a_submodule_is_refused() -> None:
    module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    with pytest.raises(PassError, match="Fuse.pattern uses call_module 0; call functions"):
        make_pattern("Fuse", module)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (lambda x: x, "calls nothing"),
        (lambda x: (x, x.relu()), "returns x, which is no value that it computes"),
        (lambda x: (x.relu(), 1), "returns 1, which is no value that it computes"),
        (lambda x: [x.relu()] * 2, "returns the same value twice"),
        (lambda x: (x.relu(), (x.exp(), x.sin())), "which is no value that it computes"),
    ],
)
def test_a_pattern_must_return_values_that_it_computes(
    pattern: Callable[..., Any], words: str
) -> None:
    with pytest.raises(PassError, match=words):
        make_pattern("Fuse", pattern)


def test_calls_that_nothing_needs_are_no_part_of_a_pattern() -> None:
    def pattern(x):
        x.exp()
        return x.relu()

    assert [node.target for node in make_pattern("Fuse", pattern).body] == ["relu"]


def test_a_write_is_part_of_a_pattern_even_where_its_result_is_not_used() -> None:
    def pattern(x, y):
        z = x * 2
        z.add_(y)
        return z

    assert [node.target for node in make_pattern("Fuse", pattern).body] == [operator.mul, "add_"]


def test_pattern_and_replacement_args_must_take_as_many_arguments() -> None:
    with pytest.raises(PassError, match="Fuse: pattern takes 2 arguments and replacement_args 1"):
        make_pass("Fuse", as_tensor, lambda x: (x,), lambda: as_tensor)


def test_replacement_func_must_return_one_object() -> None:
    with pytest.raises(PassError, match="Fuse.replacement_func.. returned two different objects"):
        make_pass("Fuse", as_tensor, lambda x, y: (x, y), lambda: lambda x, y: x)


def test_replacement_func_must_return_a_callable() -> None:
    with pytest.raises(PassError, match="Fuse.replacement_func.. returned a str, not a callable"):
        make_pass("Fuse", as_tensor, lambda x, y: (x, y), lambda: "as_tensor")


def test_a_replacement_func_that_raises_gives_one_error_that_names_it() -> None:
    def replacement_func():
        raise OSError("no kernel")

    with pytest.raises(PassError, match=r"calling Fuse.replacement_func\(\): OSError: no kernel"):
        make_pass("Fuse", as_tensor, lambda x, y: (x, y), replacement_func)
