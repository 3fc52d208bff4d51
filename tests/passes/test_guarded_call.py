"""A rewritten graph is called with arguments of the form that it was made for, and no others."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from passnet.passes.apply.guarded_call import guarded_call
from tests.passes.graphs import graph_of

REWRITTEN = object()


def made_for(function: Callable[..., Any], *examples: Any) -> Callable[..., bool]:
    """Whether the rewritten graph of a function is called with some arguments."""
    with torch.no_grad():
        call = guarded_call(graph_of(function), lambda *args: REWRITTEN, examples)
    return lambda *args: call(*args) is REWRITTEN


def scaled(x: Any, y: Any) -> Any:
    return x * y


def squared(x: Any) -> Any:
    return x * x


def add_in_place(x: Any, y: Any) -> Any:
    x.add_(y)
    return x * y


class Own(torch.Tensor):
    """A subclass, which may do anything."""


def needing_grad() -> torch.Tensor:
    return torch.ones(4, 6, requires_grad=True)


X = torch.ones(4, 6)
OTHERS = {
    "another shape": torch.ones(6, 4),
    "fewer rows": torch.ones(3, 6),
    "another rank": torch.ones(4, 6, 1),
    "other strides": torch.ones(6, 4).t(),
    "another dtype": torch.ones(4, 6, dtype=torch.float64),
    "a gap between rows": torch.ones(4, 8)[:, :6],
    "a subclass": torch.ones(4, 6).as_subclass(Own),
    "a sparse tensor": torch.ones(4, 6).to_sparse(),
    "a sparse tensor without strides": torch.ones(4, 6).to_sparse_csr(),
    "a tensor that needs a gradient": needing_grad(),
    "a parameter that needs one": torch.nn.Parameter(torch.ones(4, 6)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_original_graph_is_called_with_arguments_of_another_form(name: str) -> None:
    is_rewritten = made_for(scaled, X, 3)
    assert is_rewritten(torch.rand(4, 6), 3)
    assert not is_rewritten(OTHERS[name], 3)
    assert is_rewritten(torch.rand(4, 6), 3)


def test_what_the_original_graph_returns_and_writes_is_as_ever() -> None:
    call = guarded_call(graph_of(add_in_place), lambda x, y: REWRITTEN, [X, X])
    x, y = torch.rand(3), torch.rand(3)
    written = x.clone()
    assert torch.equal(call(written, y), (x + y) * y) and torch.equal(written, x + y)


def test_what_is_a_tensor_of_the_same_form_fits() -> None:
    is_rewritten = made_for(scaled, X, 3)
    assert is_rewritten(torch.ones(9, 9)[2:6, :].as_strided((4, 6), (6, 1)), 3)
    assert is_rewritten(torch.nn.Parameter(X, requires_grad=False), 3)
    with torch.no_grad():
        assert is_rewritten(needing_grad(), 3)
    with torch.inference_mode():
        assert is_rewritten(needing_grad(), 3)


@pytest.mark.parametrize("number", [4, 3.0, True])
def test_other_numbers_are_another_form(number: Any) -> None:
    assert not made_for(scaled, X, 3)(X, number)
    assert not made_for(scaled, X, 1)(X, number)


def test_tensors_of_another_device_do_not_fit() -> None:
    on_cpu = made_for(squared, torch.ones(3))
    on_meta = made_for(squared, torch.ones(3, device="meta"))
    assert on_cpu(torch.ones(3)) and on_meta(torch.ones(3, device="meta"))
    assert not on_meta(torch.ones(3)) and not on_cpu(torch.ones(3, device="meta"))


def test_under_autocast_the_original_graph_is_called() -> None:
    is_rewritten = made_for(scaled, torch.ones(4, 4), torch.ones(4, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_rewritten(torch.ones(4, 4), torch.ones(4, 4))
    assert is_rewritten(torch.ones(4, 4), torch.ones(4, 4))


@pytest.mark.parametrize("example", [torch.ones(5), torch.ones(1).expand(5)])
def test_layouts_whose_strides_are_like_the_examples_do_not_fit(example: torch.Tensor) -> None:
    is_rewritten = made_for(squared, example)
    assert is_rewritten(example)
    assert not is_rewritten(torch.ones(5).to_sparse()) and not is_rewritten(
        torch.ones(5).to_mkldnn()
    )


def test_values_that_do_not_lie_in_memory_as_they_are_do_not_fit() -> None:
    values = torch.ones(4, dtype=torch.complex64) * 2j
    assert made_for(squared, values)(values)
    assert not made_for(squared, values)(values.conj())
    assert made_for(squared, values.imag)(values.imag)
    assert values.conj().imag.is_neg()
    assert not made_for(squared, values.imag)(values.conj().imag)


def test_a_graph_that_writes_into_an_argument_wants_them_apart() -> None:
    is_rewritten = made_for(add_in_place, torch.ones(4), torch.ones(4))
    memory = torch.ones(8)
    assert is_rewritten(torch.ones(4), torch.ones(4))
    result = torch.ones(4)
    assert not is_rewritten(result, result)
    assert not is_rewritten(memory[:4], memory[4:])
    assert made_for(scaled, torch.ones(4), torch.ones(4))(memory[:4], memory[4:])


def test_a_graph_without_arguments_is_always_rewritten() -> None:
    assert made_for(lambda: torch.ones(3))()
