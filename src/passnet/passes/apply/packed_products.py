"""Products and convolutions by weights that are packed once, inside Inductor.

`torch.compile` hands weights to oneDNN and MKL as they lie, at each call, unless it may fold them
in (`freezing`). Here, calls by weights of the net become an op that packs them at its first call,
with a batch norm folded in, and again once they were written. Convolutions return `channels_last`,
and so does what is computed of their results; outputs keep their strides.
"""

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from passnet.passes.apply.axes import memory_order
from passnet.passes.apply.first_call import memory_of
from passnet.passes.apply.packed_op import channels_last, example_of, is_plain, is_weight
from passnet.passes.apply.packed_recurrent import put_recurrent, recurrent_layers
from passnet.passes.match.activations import Activation, activation_of
from passnet.passes.match.graph_index import GraphIndex, first_values
from passnet.passes.match.guards import EXAMPLE
from passnet.passes.match.normalise import CanonicalCall, callable_name

_CONVOLUTIONS = {"conv1d": 1, "conv2d": 2, "conv3d": 3}

_NORM = ("weight", "bias", "running_mean", "running_var")


@dataclass
class _Product:
    """A call by weights, with the norm, sum and activation after it."""

    num_dims: int
    x: torch.fx.Node
    weights: list[torch.fx.Node]
    nodes: list[torch.fx.Node]
    """The calls that it stands for, in order."""

    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    pad: list[int] = field(default_factory=list)
    """Zeros to put around the argument before, as `torch.nn.functional.pad` takes them."""

    has_bias: bool = False
    epsilon: float | None = None
    other: torch.fx.Node | None = None
    late_bias: torch.fx.Node | None = None
    """A bias that the net computes, which is added afterwards."""

    activation: Activation = ("none", "none", ())
    bits: int = 32
    """Bits of the weights of a product."""

    norm_dim: int = -1
    """The dimension of a weight norm, whose directions and lengths are the first two weights."""

    def form(self) -> str:
        """Return what the op is told, in words."""
        window = (self.stride, self.padding, self.dilation)
        name, algorithm, numbers = self.activation
        flags = (self.groups, int(self.has_bias), int(self.epsilon is not None))
        parts = (
            *(self.num_dims, *sum(window, ()), *flags),
            *(repr(self.epsilon or 0.0), name, algorithm, self.bits, *map(repr, numbers)),
            *(("weight_norm", self.norm_dim) if self.norm_dim >= 0 else ()),
        )
        return " ".join(map(str, parts))


def product_form(has_bias: bool, bits: int) -> str:
    """Return what the op is told of a product by weights in so many bits."""
    nodes: Any = None  # which it is not told
    return _Product(0, nodes, nodes, nodes, has_bias=has_bias, bits=bits).form()


def pack_products(module: torch.fx.GraphModule, weight_bits: int = 32) -> int:
    """Rewrite a graph of Dynamo in place; return the number of products that are packed.

    Weights of products, not of convolutions, are rounded to so many bits: 8, 4, or 32 for none.
    A graph under autocast stays as it is, and so do convolutions where results in `channels_last`
    could change what the graph does.
    """
    graph = module.graph
    if torch.is_autocast_enabled("cpu") or any(_switches_autocast(node) for node in graph.nodes):
        return 0
    if not torch.backends.mkldnn.enabled:  # type: ignore[truthy-function]
        return 0
    index = GraphIndex(graph)
    products, recurrent = [*_products(index)], [*recurrent_layers(index)]
    if not products and not recurrent:
        return 0
    layouts = _Layouts(index, products)
    is_settled = layouts.settle()
    if not is_settled:  # to turn images around each convolution takes longer than packing saves
        products = [product for product in products if not product.num_dims]
    results: dict[torch.fx.Node, torch.fx.Node] = {}
    for product in products:
        product.bits = 32 if product.num_dims else weight_bits
        _put(graph, product, results)
    if is_settled:
        layouts.apply(results)
    for layers in recurrent:
        put_recurrent(graph, layers, results)
    graph.lint()
    module.recompile()
    return len(products) + len(recurrent)


def _switches_autocast(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and "autocast" in callable_name(node.target)  # type: ignore[arg-type]


def _products(index: GraphIndex) -> Iterator[_Product]:
    taken: set[torch.fx.Node] = set()
    written = {index.group(node) for node in index.writers}
    for node in index.graph.nodes:
        product = _product(node, index) if node in index.calls else None
        if product and written.isdisjoint(map(index.group, product.weights)):
            if product.late_bias is None:
                _extend(product, index, taken)
            taken.update(product.nodes)
            yield product


def _product(node: torch.fx.Node, index: GraphIndex) -> _Product | None:
    call = index.calls[node]
    name = call.label.rpartition(".")[2]
    values = dict(call.arguments)
    is_known = call.label.startswith("torch.") and name in ("linear", *_CONVOLUTIONS)
    if not is_known or "out" in node.kwargs:
        return None
    num_dims = _CONVOLUTIONS.get(name, 0)
    x, result = values.get("self", values.get("input")), example_of(node)
    weights, norm_dim = _parts_of_weight(values.get("weight"), index)
    ranks = [num_dims + 2] * len(weights) + [1]
    bias = values.get("bias")
    is_late = not num_dims and isinstance(bias, torch.fx.Node) and not is_weight(bias, 1)
    if bias is not None and not is_late:
        weights.append(bias)
    if not all(is_weight(*pair) for pair in zip(weights, ranks, strict=False)):
        return None
    example = example_of(x)
    if example is None or result is None or not is_plain(example) or not is_plain(result):
        return None
    has_bias = bias is not None and not is_late
    product = _Product(num_dims, x, weights, [node], has_bias=has_bias, norm_dim=norm_dim)
    if not num_dims:
        product.late_bias = bias if is_late else None
        return product if result.is_contiguous() and example.dim() > 1 else None
    groups = values.get("groups")
    stride, dilation = (_sizes(values.get(key), num_dims) for key in ("stride", "dilation"))
    padding = values.get("padding")
    if padding == "same" and dilation:  # as torch does it: a number more at the end
        sizes = weights[0].meta[EXAMPLE].shape[2:]
        both = [d * (size - 1) for d, size in zip(dilation, sizes, strict=True)]
        padding = tuple(each // 2 for each in both)
        product.pad = [count for each in reversed(both) for count in (0, each % 2)]
    padding = _sizes(padding, num_dims)
    is_known = stride and padding and dilation and type(groups) is int
    if not is_known or example.dim() != num_dims + 2:
        return None
    product.stride, product.padding, product.dilation = stride, padding, dilation
    product.groups = groups
    return product


def _parts_of_weight(weight: Any, index: GraphIndex) -> tuple[list[Any], int]:
    """Return what a weight is made of: itself, or the directions and lengths of a weight norm and
    its dimension.
    """
    if weight in index.calls and index.calls[weight].label == "torch._weight_norm":
        values = dict(index.calls[weight].arguments)
        directions, dim = example_of(values["v"]), values["dim"]
        if directions is not None and type(dim) is int and 0 <= dim < directions.dim():
            return [values["v"], values["g"]], dim
    return [weight], -1


def _sizes(value: Any, num_dims: int) -> tuple[int, ...]:
    """Return a size for each dimension of a window; none where they are not plain numbers."""
    if value == "valid":
        return (0,) * num_dims
    sizes = (value,) * num_dims if isinstance(value, int) else value
    are_plain = isinstance(sizes, tuple) and all(type(size) is int for size in sizes)
    return sizes if are_plain and len(sizes) == num_dims else ()


def _extend(product: _Product, index: GraphIndex, taken: Collection[torch.fx.Node]) -> None:
    """Take in the norm, sum and activation that follow, where nothing else reads between."""
    if product.num_dims:
        for take in (_take_norm, _take_sum):
            if user := _only_user(product, index, taken):
                take(product, user, index.calls[user])
    user = _only_user(product, index, taken)
    activation = activation_of(user, index.calls[user], product.nodes[-1]) if user else None
    if user and activation:
        product.activation = activation
        product.nodes.append(user)


def _only_user(
    product: _Product, index: GraphIndex, taken: Collection[torch.fx.Node]
) -> torch.fx.Node | None:
    """Return the one call that reads the result, if nothing that is read changes until then."""
    last = product.nodes[-1]
    users = [*last.users]
    if len(users) != 1 or users[0] not in index.calls or users[0] in taken:
        return None
    if "out" in users[0].kwargs:
        return None
    given = [product.x, *product.weights, *([product.other] if product.other else [])]
    read = {index.group(node) for node in given}
    first = product.nodes[0]
    read.add(index.group(last))
    between = [node for node in index.writers if first < node < users[0]]
    is_same = all(index.group(node) not in read for node in between if node not in product.nodes)
    return users[0] if is_same else None


def _take_norm(product: _Product, node: torch.fx.Node, call: CanonicalCall) -> None:
    values = dict(call.arguments)
    norm = [values.get(name) for name in _NORM]
    is_norm = call.label.startswith("torch.") and call.label.endswith(".batch_norm")
    is_settled = values.get("training") is False and all(is_weight(value, 1) for value in norm)
    if is_norm and is_settled and first_values(node) == [product.nodes[-1]]:
        product.weights += [value for value in norm if isinstance(value, torch.fx.Node)]
        product.epsilon = float(values["eps"])
        product.nodes.append(node)


def _take_sum(product: _Product, node: torch.fx.Node, call: CanonicalCall) -> None:
    if call.label not in ("operator.add", "torch.add", "Tensor.add"):
        return
    if dict(call.arguments).get("alpha", 1) != 1:
        return
    last = product.nodes[-1]
    others = [value for value in node.args if value is not last]
    if len(node.args) != 2 or len(others) != 1 or (call.writes and node.args[0] is not last):
        return
    example, own = example_of(others[0]), example_of(last)
    if example is None or own is None or not is_plain(example) or example.shape != own.shape:
        return
    product.other = others[0]  # type: ignore[assignment]
    product.nodes.append(node)


class _Layouts:
    """What results in `channels_last` change: the strides of all that is computed of them."""

    def __init__(self, index: GraphIndex, products: Sequence[_Product]) -> None:
        self.graph, self.index, self.products = index.graph, index, products
        self.renamed: list[torch.fx.Node] = []
        """Calls of `view` that must become `reshape`."""
        self.merged: list[torch.fx.Node] = []
        """Calls that merge two axes of channels, which now lie last in memory."""
        self.copies = {copy for node in self.graph.nodes if (copy := _copy_to_merge(node))}
        """Calls of `contiguous` that only let such a call be a `view`."""
        self.outputs: list[torch.fx.Node] = []
        """Outputs whose strides are others now."""

    def settle(self) -> bool:
        """Find the calls to change; return whether nothing else of the graph would change."""
        images = [product.nodes[-1] for product in self.products if product.num_dims]
        laid_out = {node: channels_last(node.meta[EXAMPLE]) for node in images}
        new = {n: value for n, value in laid_out.items() if _other_strides(value, n.meta[EXAMPLE])}
        own = {node for product in self.products for node in product.nodes}
        for node in self.graph.nodes:
            if node.op == "output":
                return self._restore(node, new)
            if node in own or not any(each in new for each in node.all_input_nodes):
                continue
            if node.op != "call_function" and node.op != "call_method":
                return False
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                return False
            value = self._value(node, new)
            if value is None or self._shares_otherwise(node, value, new):
                return False
            if any(map(_other_strides, _tensors(value), _tensors(node.meta.get(EXAMPLE)))):
                new[node] = value
        return False

    def _value(self, node: torch.fx.Node, new: Mapping[torch.fx.Node, Any]) -> Any:
        """Return a call's value for other strides of its arguments; None where it has none."""

        def given(argument: torch.fx.Node) -> Any:
            return new[argument] if argument in new else argument.meta.get(EXAMPLE)

        if node in self.copies:
            return given(node.all_input_nodes[0])
        if _merges_channels(node) and node.args[0] in new:
            value = new[node.args[0]]
            self.merged.append(node)
            for method, *sizes in _merging_steps(value):
                value = getattr(value, method)(*sizes)
            return value
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), given)
        name = callable_name(node.target) if callable(node.target) else f"Tensor.{node.target}"
        if name.endswith(("as_strided", "stride", "is_contiguous")):
            return None

        def run(target: Any) -> Any:
            if node.op == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)

        # some ops make tensors of their own, which are fake where the examples are
        given_tensors = _tensors((args, kwargs))
        modes = (each.fake_mode for each in given_tensors if isinstance(each, FakeTensor))
        with next(modes, None) or nullcontext(), torch.no_grad():
            try:
                return run(node.target)
            except Exception:  # noqa: BLE001 (boundary: whatever torch raises)
                if node.target != "view":
                    return None
            try:
                value = run("reshape")
            except Exception:  # noqa: BLE001
                return None
        self.renamed.append(node)
        return value

    def _shares_otherwise(
        self, node: torch.fx.Node, value: Any, new: Mapping[torch.fx.Node, Any]
    ) -> bool:
        """Return whether a call's value is a view now and was a copy, or the reverse, and is
        written into later: `contiguous` and `reshape` copy as the layout wants it.
        """
        group = self.index.group(node)
        if node in self.copies and _other_strides(value, node.meta[EXAMPLE]):
            return False  # it is merged with the call after it, which nothing else sees
        given, start = node.all_input_nodes, node
        if node in self.merged and given[0] in self.copies:  # what it copies, and where
            given, start = given[0].all_input_nodes, given[0]
        if not any(start < w and self.index.group(w) == group for w in self.index.writers):
            return False
        former = [each.meta.get(EXAMPLE) for each in given]
        latter = [new.get(each, each.meta.get(EXAMPLE)) for each in given]
        return _shares(node.meta.get(EXAMPLE), former) != _shares(value, latter)

    def _restore(self, output: torch.fx.Node, new: Mapping[torch.fx.Node, Any]) -> bool:
        for node in output.all_input_nodes:
            if node in new:
                former = example_of(node)
                if former is None or not _is_dense(former):
                    return False
                self.outputs.append(node)
        return True

    def apply(self, results: dict[torch.fx.Node, torch.fx.Node]) -> None:
        """Change calls in the graph; `results` are the new nodes in the place of others."""
        for node in self.renamed:
            node.target = "reshape"
        for node in self.merged:
            before: Any = node.args[0]
            is_copied = before in self.copies
            merged = before.args[0] if is_copied else before
            # where values are copied, as what is written into them afterwards is not seen
            with self.graph.inserting_before(before if is_copied else node):
                merged = self._methods(merged, _merging_steps(before.meta[EXAMPLE]))
            merged.meta[EXAMPLE] = node.meta[EXAMPLE]
            node.replace_all_uses_with(merged)
            results[node] = merged
            self.graph.erase_node(node)
            if is_copied:
                self.graph.erase_node(before)
        [output] = [node for node in self.graph.nodes if node.op == "output"]
        for node in self.outputs:
            last = results.get(node, node)
            example, laid_out = node.meta[EXAMPLE], last
            calls: list[tuple[Any, ...]] = [("contiguous",)]
            if not example.is_contiguous():
                order, back = memory_order(example)
                calls = [("permute", order), ("contiguous",), ("permute", back)]
            with self.graph.inserting_before(output):
                laid_out = self._methods(laid_out, calls)
            laid_out.meta[EXAMPLE] = example
            output.replace_input_with(last, laid_out)

    def _methods(self, value: torch.fx.Node, calls: list[tuple[Any, ...]]) -> torch.fx.Node:
        """Put in calls of methods, each on the value of the one before."""
        for method, *args in calls:
            value = self.graph.call_method(method, (value, *args))
        return value


def _merges_channels(node: torch.fx.Node) -> bool:
    """Return whether a call merges the two axes of channels of images, as after a shuffle."""
    if node.op != "call_method" or node.target not in ("view", "reshape"):
        return False
    former, after = example_of(node.args[0]), example_of(node)
    if former is None or after is None or former.dim() != 5:
        return False
    if not all(type(size) is int for size in (*former.shape, *after.shape)):
        return False
    batch, first, second, *image = former.shape
    return (batch, first * second, *image) == (*after.shape,)


def _copy_to_merge(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the call of `contiguous` which lets a call merge two axes of channels, if any."""
    before: Any = node.args[0] if _merges_channels(node) else None
    if before is None or before.target != "contiguous" or len(before.users) > 1:
        return None
    return before if len(before.args) + len(before.kwargs) == 1 else None


def _merging_steps(value: torch.Tensor) -> list[tuple[Any, ...]]:
    """Return methods with arguments that merge two axes of channels, which are last in memory."""
    batch, first, second, height, width = value.shape
    return [
        ("permute", 0, 3, 4, 1, 2),
        ("reshape", batch, height, width, first * second),
        ("permute", 0, 3, 1, 2),
    ]


def _is_dense(value: torch.Tensor) -> bool:
    """Return whether a value's numbers lie side by side in some order of its axes, which is the
    usual one where sizes vary.
    """
    if value.is_contiguous():
        return True
    are_plain = all(type(stride) is int for stride in value.stride())
    return are_plain and value.permute(memory_order(value)[0]).is_contiguous()


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _shares(value: Any, others: Any) -> bool:
    return not set(map(memory_of, _tensors(others))).isdisjoint(map(memory_of, _tensors(value)))


def _other_strides(value: torch.Tensor, former: torch.Tensor) -> bool:
    return value.stride() != former.stride()


def _put(
    graph: torch.fx.Graph, product: _Product, results: dict[torch.fx.Node, torch.fx.Node]
) -> None:
    """Put the op of a product in the place of its calls, and note the results."""
    last = product.nodes[-1]
    op = torch.ops.passnet_packed.product.default
    with graph.inserting_before(last):
        x, other = results.get(product.x, product.x), product.other
        if any(product.pad):
            x = graph.call_function(torch.nn.functional.pad, (x, product.pad))
        other = results.get(other, other) if other is not None else None
        result = graph.call_function(op, (x, product.weights, other, product.form()))
        if product.late_bias is not None:
            bias = results.get(product.late_bias, product.late_bias)
            result = graph.call_function(operator.add, (result, bias))
    result.meta[EXAMPLE] = last.meta[EXAMPLE]
    last.replace_all_uses_with(result)
    for node in reversed(product.nodes):
        graph.erase_node(node)
    results[last] = result
