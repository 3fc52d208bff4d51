"""Attention that a captured graph writes out by hand: where it is, cut out with its inputs.

A softmax counts if its argument comes from a product of two computed tensors, and its result goes
into a product with another tensor, with only elementwise ops, views, casts, masks and dropout
between. A tensor that is only a view of a weight is not computed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from passnet.graph.fx.build import op_number
from passnet.graph.spec import Graph, main_float
from passnet.graph.values.effects import last_name, writes_first

PRODUCTS = frozenset(["matmul", "bmm", "einsum", "baddbmm", "mm"])
SOFTMAX = frozenset(["softmax", "_softmax"])
CALLS = frozenset(["scaled_dot_product_attention", "_transformer_encoder_layer_fwd"])
"""Ops that are attention already."""

HEADS = "multi_head_attention_forward"
"""An op that calls `scaled_dot_product_attention`, or writes it out if weights are wanted."""

VIEWS = frozenset(
    ["view", "reshape", "transpose", "permute", "t", "getattr", "expand", "expand_as", "unsqueeze",
     "squeeze", "flatten", "unflatten", "contiguous", "getitem", "chunk", "split", "unbind",
     "movedim", "swapaxes", "clone", "detach", "view_as", "reshape_as", "repeat_interleave",
     "repeat", "slice", "select"]
)  # fmt: skip
CASTS = frozenset(["to", "float", "half", "bfloat16", "double", "type", "type_as"])
SCALES = frozenset(["mul", "div", "truediv", "multiply"])
MASKS = frozenset(["add", "sub", "masked_fill", "where"])
DROPOUT = frozenset(["dropout"])
OTHERS = frozenset(
    ["tanh", "clamp", "clip", "relu", "sigmoid", "exp", "log", "pow", "sqrt", "square", "neg",
     "abs", "nan_to_num", "conv2d", "conv1d", "linear", "batch_norm", "layer_norm", "pad", "cat",
     "max", "maximum", "minimum", "roll", "gather", "softplus", "normalize", "rsub", "stack",
     "gelu", "silu", "index_select", "flip", "as_strided", "cumsum", "masked_scatter"]
)  # fmt: skip
"""Other ops that may lie between a product and the softmax."""

BETWEEN = VIEWS | CASTS | SCALES | MASKS | DROPOUT | OTHERS

HEAVY = PRODUCTS | SOFTMAX | CALLS | frozenset(
    [HEADS, "linear", "conv1d", "conv2d", "conv3d", "layer_norm", "batch_norm", "group_norm",
     "embedding", "interpolate", "addmm", "rms_norm", "gelu", "silu", "normalize", "lstm", "gru",
     "adaptive_avg_pool2d", "max_pool2d", "avg_pool2d", "grid_sample", "conv_transpose2d",
     "instance_norm", "lstm_cell", "gru_cell", "relu", "topk", "glu"]
)  # fmt: skip
"""Ops before which a window ends: their results are arguments of the window."""

MAX_BETWEEN = 16
"""Most ops between a product and the softmax."""


class Net:
    """A graph's nodes, with what a walk asks of them."""

    def __init__(self, graph: Graph, module: GraphModule) -> None:
        """Take a graph and the module that was built of it."""
        self.module = module
        ops = graph.program.ops
        roles = {spec.name: spec.role for spec in graph.tensors}
        self.ranks = {spec.name: len(spec.shape) for spec in graph.tensors}
        self.dtype = main_float(graph.tensors) or "none"
        self.nodes = list(module.graph.nodes)
        self.place = {node: index for index, node in enumerate(self.nodes)}
        self.names: dict[Node, str] = {}
        self.writers: dict[Node, list[Node]] = {}
        self.has_input: dict[Node, bool] = {}
        for node in self.nodes:
            number = op_number(node)
            name, is_writer = "", False
            if number is not None:
                name = last_name(ops[number].target)
                is_writer = writes_first(ops[number].target, dict(ops[number].kwargs))
                if is_writer:
                    name = name.strip("_")
                    if ops[number].target.startswith("operator.i"):
                        name = name.removeprefix("i")
            self.names[node] = name
            if is_writer and node.all_input_nodes:
                self.writers.setdefault(node.all_input_nodes[0], []).append(node)
            if node.op == "placeholder":
                self.has_input[node] = roles.get(str(node.target)) == "input"
            else:
                self.has_input[node] = any(self.has_input[each] for each in node.all_input_nodes)
        self.live = self._live()

    def _live(self) -> set[Node]:
        waiting = [self.nodes[-1]]
        live = set(waiting)
        while waiting:
            node = waiting.pop()
            for each in (*node.all_input_nodes, *self.writers.get(node, ())):
                if each not in live:
                    live.add(each)
                    waiting.append(each)
        return live

    def is_computed(self, node: Node) -> bool:
        """Return whether a value is more than a view of a weight."""
        while self.names[node] in VIEWS | CASTS and node.all_input_nodes:
            node = node.all_input_nodes[0]
        return node.op != "placeholder" or self.has_input[node]

    def sources(self, node: Node, before: int) -> list[Node]:
        """Return what a node's value comes from: its arguments, and writes into it."""
        written = [each for each in self.writers.get(node, ()) if self.place[each] < before]
        return [*node.all_input_nodes, *written]


@dataclass(frozen=True)
class Attention:
    """One attention: from the product of query and key to that with the values.

    `before` and `after` are the ops between, in the order of the data.
    """

    scores: Node
    softmax: Node
    output: Node
    before: tuple[Node, ...] = ()
    after: tuple[Node, ...] = ()

    @property
    def path(self) -> tuple[Node, ...]:
        """Return all nodes from the first product to the second."""
        return (self.scores, *self.before, self.softmax, *self.after, self.output)


def attentions(net: Net) -> Iterator[Attention]:
    """Yield the attentions of a graph that are written out, those of torch's own layer included."""
    for node in net.nodes:
        if node not in net.live:
            continue
        if net.names[node] == HEADS and returns_weights(node):
            yield Attention(node, node, node)
        if net.names[node] in SOFTMAX:
            before = _scores(net, node)
            after = before and _output(net, node)
            if before and after:
                yield Attention(before[0], node, after[-1], tuple(before[1:]), tuple(after[:-1]))


def returns_weights(node: Node) -> bool:
    """Return whether a call of torch's multi-head attention also returns its weights."""
    return bool(node.kwargs.get("need_weights", True))


def _scores(net: Net, softmax: Node) -> list[Node] | None:
    """Return the nodes from a product to the argument of a softmax."""
    return _up_to_product(net, softmax.all_input_nodes[0], MAX_BETWEEN, net.place[softmax], set())


def _up_to_product(
    net: Net, node: Node, left: int, before: int, seen: set[Node]
) -> list[Node] | None:
    name = net.names[node]
    if name in PRODUCTS:
        factors = operands(net, node)
        return [node] if len(factors) > 1 and all(map(net.is_computed, factors)) else None
    if name not in BETWEEN or not left or node in seen:
        return None
    seen.add(node)
    sources = net.sources(node, before)
    if name in ("linear", "conv1d", "conv2d", "layer_norm", "batch_norm"):
        sources = sources[:1]
    for source in sources:
        found = _up_to_product(net, source, left - 1, before, seen)
        if found:
            return [*found, node]
    return None


def operands(net: Net, product: Node) -> list[Node]:
    """Return the two factors of a product."""
    inputs = product.all_input_nodes
    return inputs[1:] if net.names[product] == "baddbmm" else inputs


def _output(net: Net, softmax: Node) -> list[Node] | None:
    """Return the nodes from after a softmax to the product with the values."""
    waiting: list[list[Node]] = [[softmax]]
    seen = {softmax}
    while waiting:
        path = waiting.pop(0)
        for user in path[-1].users:
            if user in seen or user not in net.live:
                continue
            seen.add(user)
            name = net.names[user]
            if name in PRODUCTS:
                others = [each for each in operands(net, user) if each is not path[-1]]
                if others and all(map(net.is_computed, others)):
                    return [*path[1:], user]
            elif name in BETWEEN and len(path) <= MAX_BETWEEN:
                waiting.append([*path, user])
    return None


def outline(net: Net, attention: Attention) -> str:
    """Return a text that is equal for attentions that are written with the same ops.

    It holds the ops between the products, and views, casts and scales before these. It has no
    sizes, and of numbers above 4 only that they are there.
    """
    path, last = set(attention.path), net.place[attention.output]
    waiting, seen = [attention.output], {attention.output: 0}
    parts: list[str] = []
    while waiting:
        node = waiting.pop()
        if node not in path and net.names[node] not in VIEWS | CASTS | SCALES:
            rank = net.ranks.get(str(node.target))
            parts.append(f"{net.names[node]} {rank} {net.has_input[node]}")
            continue
        sources = net.sources(node, last)
        for each in sources:
            if each not in seen:
                seen[each] = len(seen)
                waiting.append(each)
        arguments = [*node.args, *node.kwargs.items()]
        parts.append(f"{net.names[node]}({_plain(arguments)}){[seen[each] for each in sources]}")
        if node in path and any(user in net.live and user not in seen for user in node.users):
            parts.append("used")
    after = [_plain(node.args) for node in views_after(net, attention)]
    return ";".join([net.dtype, *parts, *after])


def _plain(arg: Any) -> str:
    """Return an argument as text, without names and large numbers."""
    if isinstance(arg, (tuple, list)):
        return f"[{','.join(map(_plain, arg))}]"
    if isinstance(arg, slice):
        return f"slice{_plain((arg.start, arg.stop, arg.step))}"
    if isinstance(arg, bool) or not isinstance(arg, (int, float, Node)):
        return str(arg)
    if isinstance(arg, Node):
        return "%"
    is_small = isinstance(arg, int) and -4 <= arg <= 4
    return str(arg) if is_small else "-" if arg < 0 else "0." if arg == 0 else "#"


def views_after(net: Net, attention: Attention) -> list[Node]:
    """Return the views of a result of `bmm`, which a pattern has too; `matmul` has its own."""
    views: list[Node] = []
    node = attention.output
    while net.names[attention.output] in ("bmm", "baddbmm"):
        users = [user for user in node.users if user in net.live]
        if len(users) != 1 or net.names[users[0]] not in ("view", "reshape"):
            break
        node = users[0]
        if len(node.all_input_nodes) > 1:
            break  # to a size that is computed
        views.append(node)
    return views


def window(
    net: Net, attention: Attention, values: dict[Node, Any]
) -> tuple[GraphModule, list[torch.Tensor], str]:
    """Cut an attention out: a module, its arguments, and a text that is equal for equal forms.

    The window begins after layers, and has views, masks and rotations of its own.
    """
    after = views_after(net, attention)
    result = after[-1] if after else attention.output
    inside = _inside(net, attention, values) | set(after)
    graph = torch.fx.Graph()
    copies: dict[Node, Any] = {}
    arguments: list[torch.Tensor] = []
    text = _Text()
    for node in net.nodes:
        if node not in inside:
            continue
        for each in node.all_input_nodes:
            if each in copies:
                continue
            value = values[each]
            if isinstance(value, torch.Tensor):
                copies[each] = graph.placeholder(f"x{len(arguments)}")
                arguments.append(value)
                text.argument(copies[each], value)
            else:
                copies[each] = value  # a size
        args = _on_cpu(torch.fx.map_arg(node.args, lambda each: copies[each]))
        kwargs: Any = _on_cpu(torch.fx.map_arg(node.kwargs, lambda each: copies[each]))
        copies[node] = graph.create_node(node.op, node.target, args, kwargs)
        text.node(copies[node], net.names[node])
    live = net.live - inside
    used = [
        node
        for node in net.nodes
        if node in inside
        and isinstance(values[node], torch.Tensor)
        and (node is result or not live.isdisjoint(node.users))
    ]
    if attention.scores is attention.output:
        pair = copies[attention.output]
        results = [graph.call_function(operator.getitem, (pair, number)) for number in (0, 1)]
    else:
        results = [copies[node] for node in used]
    text.result(results)
    graph.output(tuple(results))
    return GraphModule(torch.nn.Module(), graph), arguments, str(text)


def _inside(net: Net, attention: Attention, values: dict[Node, Any]) -> set[Node]:
    path = set(attention.path)
    last = net.place[attention.output]
    waiting, inside = [attention.output], {attention.output}
    while waiting:
        node = waiting.pop()
        for each in net.sources(node, last):
            if each in inside or not isinstance(values.get(each), (torch.Tensor, tuple, list)):
                continue
            if isinstance(values[each], torch.Size):
                continue
            if each.op == "placeholder" or (net.names[each] in HEAVY and each not in path):
                continue
            if any(net.names[source] in HEAVY and isinstance(values.get(source), (tuple, list))
                   for source in each.all_input_nodes):  # fmt: skip
                continue
            inside.add(each)
            waiting.append(each)
    return inside


def _on_cpu(arg: Any) -> Any:
    """Return an argument with devices replaced by the CPU."""
    if isinstance(arg, (tuple, list)):
        return [*map(_on_cpu, arg)] if isinstance(arg, list) else tuple(map(_on_cpu, arg))
    if isinstance(arg, dict):
        return {key: _on_cpu(each) for key, each in arg.items()}
    if isinstance(arg, slice):
        return arg
    is_device = isinstance(arg, torch.device) or arg == "meta"
    return torch.device("cpu") if is_device else arg


class _Text:
    """A window as text in which equal sizes have equal names, and numbers only their sign."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.numbers: dict[Any, int] = {}
        self.sizes: dict[int, str] = {0: "0", 1: "1"}

    def argument(self, node: Node, value: torch.Tensor) -> None:
        self.numbers[node] = len(self.numbers)
        order = sorted(range(value.dim()), key=lambda axis: -value.stride(axis))
        layout = "contiguous" if value.is_contiguous() else str(order)
        self.parts.append(f"{value.dtype} {[self._size(s) for s in value.shape]} {layout}")

    def node(self, node: Node, name: str) -> None:
        kwargs = {key: arg for key, arg in node.kwargs.items() if key != "_stacklevel"}
        self.parts.append(f"{name}({self._arg(node.args)}{self._arg(kwargs)})")
        self.numbers[node] = len(self.numbers)

    def result(self, results: Sequence[Node]) -> None:
        self.parts.append(f"return {[self.numbers.get(each) for each in results]}")

    def _size(self, size: int) -> str:
        return self.sizes.setdefault(size, f"s{len(self.sizes)}")

    def _arg(self, arg: Any) -> str:
        if isinstance(arg, Node):
            return f"%{self.numbers[arg]}"
        if isinstance(arg, dict):
            return "".join(f",{key}={self._arg(each)}" for key, each in arg.items())
        if isinstance(arg, (tuple, list)):
            return f"[{','.join(map(self._arg, arg))}]"
        if isinstance(arg, bool) or arg is None:
            return str(arg)
        if isinstance(arg, int):
            return str(arg) if -4 <= arg <= 4 else self._size(arg)
        if isinstance(arg, float):
            return "0.0" if arg == 0 else "-" if arg < 0 else "+"
        return str(arg)

    def __str__(self) -> str:
        return ";".join(self.parts)
