"""One form for every way to write a call, and different forms for different calls."""

import inspect
import operator
from typing import Any

import pytest
import torch
import torch.fx

from passnet.graph.fx.operators import IN_PLACE
from passnet.passes.match.normalise import LITERAL, CanonicalCall, normalise
from tests.passes.graphs import outcome

F = torch.nn.functional
GRAPH = torch.fx.Graph()
X, Y, W, B = (GRAPH.placeholder(name) for name in ("x", "y", "w", "b"))


class Written:
    """A call as it is written: what is called (a text names a method), and its arguments."""

    def __init__(self, target: Any, *args: Any, **kwargs: Any) -> None:
        self.target, self.args, self.kwargs = target, args, kwargs

    def normal(self) -> CanonicalCall:
        op = "call_method" if isinstance(self.target, str) else "call_function"
        return normalise(GRAPH.create_node(op, self.target, self.args, self.kwargs))

    def run(self, values: dict[torch.fx.Node, torch.Tensor]) -> Any:
        args, kwargs = torch.fx.map_arg((self.args, self.kwargs), values.__getitem__)
        if isinstance(self.target, str):
            return getattr(args[0], self.target)(*args[1:], **kwargs)
        return self.target(*args, **kwargs)


def form(call: Written) -> tuple[Any, str]:
    """What must agree for two calls to match; as text, so that 1, 1.0 and True differ."""
    normal = call.normal()
    return normal.key, repr(normal.arguments)


C = Written
PAD = torch._C._nn.pad

EQUAL: dict[str, list[Written]] = {
    "operator, as a method": [C(operator.eq, X, Y), C("__eq__", X, Y)],
    "operator on one value, as a method": [C(operator.neg, X), C("__neg__", X)],
    "lookup, as a method": [C(operator.getitem, X, 0), C("__getitem__", X, 0)],
    "softmax, method of the schema": [
        C("softmax", X, -1), C("softmax", X, dim=-1), C("softmax", X, -1, None),
        C("softmax", X, -1, dtype=None),
    ],
    "softmax, Python function": [
        C(F.softmax, X, -1), C(F.softmax, X, dim=-1), C(F.softmax, input=X, dim=-1),
        C(F.softmax, X, dim=-1, _stacklevel=5, dtype=None),
    ],
    "relu, Python function": [C(F.relu, X), C(F.relu, X, False), C(F.relu, X, inplace=False)],
    "sigmoid, by Dynamo and by a trace": [
        C("sigmoid", X), C(F.sigmoid, X), C(F.sigmoid, input=X),
    ],
    "tanh, by Dynamo and by a trace": [C("tanh", X), C(F.tanh, X)],
    "relu, built-in": [C(torch.relu, X), C(torch.relu, input=X)],
    "conv2d, one number a pair": [
        C(torch.conv2d, X, W), C(torch.conv2d, X, W, None), C(torch.conv2d, X, W, None, 1),
        C(torch.conv2d, X, W, stride=(1, 1)), C(torch.conv2d, X, W, None, [1, 1], (0, 0)),
        C(torch.conv2d, X, W, bias=None, padding=0, dilation=1, groups=1),
        C(F.conv2d, X, W, stride=(1,)),
    ],
    "view, sizes spread": [
        C("view", X, 2, -1), C("view", X, (2, -1)), C("view", X, [2, -1]),
        C("view", X, torch.Size((2, -1))), C("view", X, size=(2, -1)),
    ],
    "reshape, one size": [C("reshape", X, -1), C("reshape", X, (-1,)), C("reshape", X, shape=[-1])],
    "permute": [
        C("permute", X, 0, 2, 3, 1), C("permute", X, (0, 2, 3, 1)),
        C("permute", X, dims=[0, 2, 3, 1]),
    ],
    "expand": [C("expand", X, -1, -1, 6, 6), C("expand", X, (-1, -1, 6, 6))],
    "repeat": [C("repeat", X, 1, 1, 2, 1), C("repeat", X, (1, 1, 2, 1))],
    "transpose": [C("transpose", X, 1, 2), C("transpose", X, dim0=1, dim1=2)],
    "unsqueeze": [C("unsqueeze", X, 1), C("unsqueeze", X, dim=1)],
    "chunk": [C("chunk", X, 2), C("chunk", X, 2, 0), C("chunk", X, chunks=2, dim=0)],
    "mean, one dimension": [
        C("mean", X, 2), C("mean", X, (2,)), C("mean", X, dim=(2,)),
        C("mean", X, dim=2, keepdim=False), C("mean", X, axis=2),
        C("mean", X, axis=[2], keepdims=False),
    ],
    "mean, all": [C("mean", X), C("mean", X, dtype=None)],
    "sum, function": [C(torch.sum, X, -1), C(torch.sum, input=X, dim=[-1], keepdim=False)],
    "pad, by Dynamo and by Python": [
        C(PAD, X, (0, 1)), C(F.pad, X, (0, 1)), C(F.pad, X, [0, 1], "constant"),
        C(PAD, X, pad=(0, 1), mode="constant", value=None), C(F.pad, input=X, pad=(0, 1)),
    ],
    "gelu": [
        C(torch._C._nn.gelu, X), C(F.gelu, X, approximate="none"), C(torch._C._nn.gelu, input=X)
    ],
    "to a dtype": [
        C("to", X, torch.float16), C("to", X, dtype=torch.float16),
        C("to", X, torch.float16, False, False), C("to", X, torch.float16, copy=False),
        C("to", X, torch.float16, memory_format=torch.preserve_format),
    ],
    "to a device": [C("to", X, "cpu"), C("to", X, torch.device("cpu")), C("to", X, device="cpu")],
    "layer norm, list or tuple": [
        C(F.layer_norm, X, (6,)), C(F.layer_norm, X, [6]), C(F.layer_norm, X, torch.Size((6,))),
        C(F.layer_norm, X, (6,), None, None, 1e-05),
        C(F.layer_norm, X, normalized_shape=(6,), eps=1e-05),
    ],
    "batch norm, a float given as integer": [
        C(F.batch_norm, X, B, B, momentum=1, eps=1),
        C(F.batch_norm, X, B, B, None, None, False, 1.0, 1.0),
    ],
    "max pool, dispatched by a bool": [
        C(F.max_pool2d, X, 2), C(F.max_pool2d, X, 2, None),
        C(F.max_pool2d, X, kernel_size=2, padding=0),
        C(F.max_pool2d, X, 2, None, 0, 1, False, False),
    ],
    "average pool, built-in": [
        C(F.avg_pool2d, X, 2), C(F.avg_pool2d, X, (2, 2)),
        C(F.avg_pool2d, X, kernel_size=[2, 2], padding=0),
    ],
    "cat": [C(torch.cat, [X, Y]), C(torch.cat, (X, Y), 0), C(torch.cat, tensors=(X, Y), dim=0)],
    "add, function": [
        C(torch.add, X, Y), C(torch.add, X, Y, alpha=1), C(torch.add, input=X, other=Y),
    ],
    "dropout": [
        C(F.dropout, X, 0.0, False), C(F.dropout, X, 0, training=False),
        C(F.dropout, X, p=0.0, training=False),
    ],
    "contiguous": [C("contiguous", X), C("contiguous", X, memory_format=torch.contiguous_format)],
    "clone": [C("clone", X), C("clone", X, memory_format=torch.preserve_format)],
    "roll": [
        C(torch.roll, X, 1, 2), C(torch.roll, X, shifts=(1,), dims=(2,)),
        C(torch.roll, X, [1], [2]),
    ],
    "clamp": [
        C(torch.clamp, X, 0, 1), C(torch.clamp, X, min=0, max=1), C(torch.clamp, X, 0, max=1),
    ],
}  # fmt: skip

DIFFERENT: dict[str, tuple[Written, Written]] = {
    "dim=-1 and dim=1": (C("softmax", X, -1), C("softmax", X, 1)),
    "1 and 1.0": (C(operator.add, X, 1), C(operator.add, X, 1.0)),
    "1 and True": (C(operator.add, X, 1), C(operator.add, X, True)),
    "1 and 1.0 of a schema's number": (C(torch.add, X, 1), C(torch.add, X, 1.0)),
    "1 and True of a schema's number": (C(torch.add, X, 1), C(torch.add, X, True)),
    "float32 and float16": (C("to", X, torch.float32), C("to", X, torch.float16)),
    "torch.add and operator.add": (C(torch.add, X, Y), C(operator.add, X, Y)),
    "torch.relu and F.relu": (C(torch.relu, X), C(F.relu, X)),
    "method and function": (C("relu", X), C(torch.relu, X)),
    "swapped arguments": (C(operator.sub, X, Y), C(operator.sub, Y, X)),
    "swapped keywords": (C(torch.sub, input=X, other=Y), C(torch.sub, input=Y, other=X)),
    "an optional argument": (C(F.layer_norm, X, (6,), W), C(F.layer_norm, X, (6,), None, W)),
    "keepdim": (C("mean", X, 2), C("mean", X, 2, True)),
    "mean of all and of one": (C("mean", X), C("mean", X, 0)),
    "gelu's approximation": (C(F.gelu, X), C(F.gelu, X, approximate="tanh")),
    "stride": (C(torch.conv2d, X, W), C(torch.conv2d, X, W, None, (1, 2))),
    "a slice's step": (
        C(operator.getitem, X, slice(0, 4)),
        C(operator.getitem, X, slice(0, 4, 2)),
    ),
    "list nesting": (C(operator.getitem, X, (0, 1)), C(operator.getitem, X, ((0, 1),))),
    "memory order of a clone": (
        C("clone", X),
        C("clone", X, memory_format=torch.contiguous_format),
    ),
    "channels last": (
        C("contiguous", X),
        C("contiguous", X, memory_format=torch.channels_last),
    ),
    "training": (C(F.dropout, X, 0.5, True), C(F.dropout, X, 0.5, False)),
    "view of sizes and of a dtype": (C("view", X, 4), C("view", X, torch.int32)),
}

IN_PLACE_CALLS: dict[str, tuple[Written, Written]] = {
    "a method": (C("add_", X, Y), C("add", X, Y)),
    "a method with a keyword": (C("add_", X, other=Y, alpha=1), C("add", X, Y)),
    "a function of torch": (C(torch.relu_, X), C(torch.relu, X)),
    "a function of torch.nn": (C(torch._C._nn.silu_, X), C(torch._C._nn.silu, X)),
    "inplace by keyword": (C(F.relu, X, inplace=True), C(F.relu, X)),
    "inplace by position": (C(F.relu, X, True), C(F.relu, X)),
    "inplace of dropout": (C(F.dropout, X, 0.0, False, True), C(F.dropout, X, 0.0, False)),
    "fill": (C(torch.fill_, X, 2), C(torch.fill, X, 2)),
    **{
        f"operator.{name}": (
            C(getattr(operator, name), X, Y),
            C(getattr(operator, name[1:] + ("_" if name in ("iand", "ior") else "")), X, Y),
        )
        for name in IN_PLACE.values()
    },
}

WRITES_ONLY = [
    C("copy_", X, Y), C("fill_", X, 1.0), C("zero_", X), C("uniform_", X), C("__iadd__", X, Y),
    C("__setitem__", X, 0, 1.0), C(operator.setitem, X, 0, 1.0), C(torch.ops.aten.relu_.default, X),
]  # fmt: skip
"""Calls that write and have no plain form to take."""

READS_ONLY = [
    C("add", X, Y), C("__add__", X, Y), C("requires_grad_", X), C(operator.and_, X, Y),
    C(operator.invert, X), C(operator.not_, X), C(F.relu, X, inplace=False),
]  # fmt: skip


@pytest.fixture(scope="module")
def values() -> dict[torch.fx.Node, torch.Tensor]:
    torch.manual_seed(0)
    shapes = {X: (2, 4, 6, 6), Y: (2, 4, 6, 6), W: (3, 4, 3, 3), B: (4,)}
    return {node: torch.rand(shape) + 0.5 for node, shape in shapes.items()}


@pytest.mark.parametrize("name", EQUAL)
def test_ways_to_write_one_call_have_one_form(name: str) -> None:
    first, *equal = EQUAL[name]
    for call in equal:
        assert form(call) == form(first), call.normal()
        assert not call.normal().writes


@pytest.mark.parametrize("name", EQUAL)
def test_what_has_one_form_computes_one_value(
    name: str, values: dict[torch.fx.Node, torch.Tensor]
) -> None:
    first, *equal = EQUAL[name]
    expected = outcome(lambda: first.run(values), [])
    for call in equal:
        torch.testing.assert_close(outcome(lambda call=call: call.run(values), []), expected)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_calls_have_different_forms(name: str) -> None:
    first, second = DIFFERENT[name]
    assert form(first) != form(second)


@pytest.mark.parametrize("name", IN_PLACE_CALLS)
def test_an_in_place_call_has_the_plain_form_and_says_that_it_writes(name: str) -> None:
    in_place, plain = IN_PLACE_CALLS[name]
    assert form(in_place) == form(plain)
    assert in_place.normal().writes and not plain.normal().writes


@pytest.mark.parametrize(
    "call", WRITES_ONLY, ids=lambda call: getattr(call.target, "__name__", str(call.target))
)
def test_a_writing_call_without_plain_form_says_that_it_writes(call: Written) -> None:
    assert call.normal().writes


@pytest.mark.parametrize(
    "call", READS_ONLY, ids=lambda call: getattr(call.target, "__name__", str(call.target))
)
def test_a_call_that_only_reads_does_not_write(call: Written) -> None:
    assert not call.normal().writes


def test_a_call_of_an_unknown_function_keeps_its_arguments_as_they_stand() -> None:
    def own(*args: Any, **kwargs: Any) -> None: ...

    assert C(own, X, [1, (2,)], b=1, a=2).normal().arguments == (
        ("0", X), ("1", (1, (2,))), ("a", 2), ("b", 1),
    )  # fmt: skip


@pytest.mark.parametrize("signature", ["none", inspect.Signature()])
def test_a_signature_that_a_pass_gave_to_a_function_changes_no_call(signature: Any) -> None:
    def own(x: Any, in_place: bool = False) -> None: ...

    own.__signature__ = signature  # type: ignore[attr-defined]
    assert C(own, X).normal().arguments == (("x", X), ("in_place", False))


def test_a_call_that_no_overload_takes_keeps_its_arguments_as_they_stand() -> None:
    assert C("mean", X, nonsense=1).normal().arguments == (("0", X), ("nonsense", 1))


def test_a_node_known_to_stand_for_a_literal_selects_the_overload_of_that_literal() -> None:
    dtype = GRAPH.placeholder("dtype")
    assert C("view", X, dtype).normal().arguments == (("self", X), ("size", dtype))
    dtype.meta[LITERAL] = torch.dtype
    assert C("view", X, dtype).normal().arguments == (("self", X), ("dtype", dtype))


def test_a_node_known_to_stand_for_an_integer_is_repeated_as_the_integer_is() -> None:
    size = GRAPH.placeholder("size")
    size.meta[LITERAL] = int
    assert dict(C("mean", X, size).normal().arguments)["dim"] == (size,)
    assert dict(C(torch.conv2d, X, W, None, size).normal().arguments)["stride"] == (size, size)
