"""Attention that a captured graph writes out by hand: where it is, and how it is written.

A softmax counts if its argument comes from a product of two computed tensors, and its result goes
into a product with another tensor, with only elementwise ops, views, casts, masks and dropout
between. A tensor that is only a view of a weight is not computed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
        operands = _operands(net, node)
        return [node] if len(operands) > 1 and all(map(net.is_computed, operands)) else None
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


def _operands(net: Net, product: Node) -> list[Node]:
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
                others = [each for each in _operands(net, user) if each is not path[-1]]
                if others and all(map(net.is_computed, others)):
                    return [*path[1:], user]
            elif name in BETWEEN and len(path) <= MAX_BETWEEN:
                waiting.append([*path, user])
    return None


@dataclass(frozen=True)
class Form:
    """How an attention is written; each field but `layout` names one way to differ from the rest.

    The defaults are a form that Inductor fuses.
    """

    scale: str = "divided"
    mask: str = "none"
    layout: str = "four axes"
    cast: bool = False
    softmax_axis: str = "last"
    dropout: bool = False
    weights_used: bool = False
    others: tuple[str, ...] = field(default=())


def form_of(net: Net, attention: Attention, values: dict[Node, Any]) -> Form:
    """Describe an attention, from the fake values of a run."""
    if attention.scores is attention.output:
        return Form(layout=HEADS, weights_used=True)
    path = attention.path
    after = (attention.softmax, *attention.after)
    between = (*attention.before, *attention.after)
    written = [each for node in path for each in net.writers.get(node, ()) if each not in path]
    names = [net.names[node] for node in (*between, *written)]
    return Form(
        _scale(net, attention),
        _mask(net, [*attention.before, *written]),
        _layout(net, attention, values),
        any(_is_cast(net, node, values) for node in (attention.softmax, *between)),
        _axis(attention.softmax, values),
        any(net.names[node] in DROPOUT and _drops(node) for node in between),
        any(_is_used(net, node, path, written) for node in after),
        tuple(sorted({name for name in names if name in OTHERS} | _twice(net, attention))),
    )


def _twice(net: Net, attention: Attention) -> set[str]:
    """Return what an attention does twice that others do once."""
    scales = [node for node in attention.before if net.names[node] in SCALES]
    return {"another scale"} if len(scales) > 1 else set()


def _number(arg: object) -> bool:
    return isinstance(arg, (int, float))


def _scale(net: Net, attention: Attention) -> str:
    for node in attention.before:
        if net.names[node] in SCALES and len(node.args) > 1:
            if not any(map(_number, node.args)):
                return "a tensor"
            return "multiplied" if net.names[node] in ("mul", "multiply") else "divided"
    if net.names[attention.scores] == "baddbmm" and attention.scores.kwargs.get("alpha", 1) != 1:
        return "in baddbmm"
    for operand in _operands(net, attention.scores):
        node = operand
        for _ in range(MAX_BETWEEN):
            if net.names[node] in SCALES and any(map(_number, node.args)):
                return "on query or key"
            if net.names[node] not in VIEWS | CASTS | SCALES or not node.all_input_nodes:
                break
            node = node.all_input_nodes[0]
    return "none"


def _mask(net: Net, nodes: Sequence[Node]) -> str:
    kinds = set()
    for node in nodes:
        if net.names[node] in ("masked_fill", "where"):
            kinds.add("filled")
        elif net.names[node] in ("add", "sub"):
            others = [each for each in node.all_input_nodes if each not in nodes]
            kinds.add(_added(net, others))
    return " and ".join(sorted(kinds)) or "none"


def _added(net: Net, others: Sequence[Node]) -> str:
    """Return what a tensor is that is added to the scores."""
    seen: set[Node] = set()
    waiting = list(others)
    is_weight = False
    while waiting:
        node = waiting.pop()
        if net.names[node] in PRODUCTS:
            return "bias that is a product"
        if node.op == "placeholder" and not net.has_input[node]:
            is_weight = True
        if net.names[node] in ("embedding", "linear", "conv2d"):
            is_weight = True
        elif net.names[node] not in HEAVY:
            new = [each for each in node.all_input_nodes if each not in seen]
            seen.update(new)
            waiting += new
    return "bias of weights" if is_weight else "added"


def _layout(net: Net, attention: Attention, values: dict[Node, Any]) -> str:
    products = (attention.scores, attention.output)
    if any(net.names[node] == "einsum" for node in products):
        return "einsum"
    last = attention.after[-1] if attention.after else attention.softmax
    if _operands(net, attention.output)[0] is not last:
        return "weights right of the values"
    rank = values[attention.scores].dim()
    moved = any(net.names[node] in VIEWS - {"contiguous", "detach"}
                and values[node].shape != values[node.all_input_nodes[0]].shape
                for node in (*attention.before, *attention.after)
                if isinstance(values.get(node), torch.Tensor)
                and isinstance(values.get(node.all_input_nodes[0]), torch.Tensor))  # fmt: skip
    if rank < 4:
        is_plain = all(net.names[node] in ("bmm", "baddbmm") for node in products)
        kind = ", views between" if moved else "" if is_plain else " by matmul"
        return f"{rank} axes{kind}"
    if moved:
        return "views between"
    if not _is_swap(net, _operands(net, attention.scores)[-1], rank):
        return "key not swapped last"
    return "four axes" if rank == 4 else "more axes"


def _is_swap(net: Net, key: Node, rank: int) -> bool:
    """Return whether a node only swaps the last two axes."""
    name, args = net.names[key], key.args[1:]
    if name == "getattr":
        return args[0] in ("mT", "T")
    if name == "permute":
        axes = args[0] if args and isinstance(args[0], (tuple, list)) else args
        plain = [axis % rank for axis in axes]  # type: ignore[operator]
        return plain == [*range(rank - 2), rank - 1, rank - 2]
    numbers = [arg % rank for arg in args if isinstance(arg, int)]
    return name in ("transpose", "swapaxes") and sorted(numbers) == [rank - 2, rank - 1]


def _is_cast(net: Net, node: Node, values: dict[Node, Any]) -> bool:
    value, source = values.get(node), values.get(node.all_input_nodes[0])
    both = isinstance(value, torch.Tensor) and isinstance(source, torch.Tensor)
    return both and value.dtype != source.dtype and net.names[node] not in ("where",)


def _axis(softmax: Node, values: dict[Node, Any]) -> str:
    axis = softmax.kwargs.get("dim", softmax.args[1] if len(softmax.args) > 1 else -1)
    rank = values[softmax].dim()
    return "last" if isinstance(axis, int) and axis % rank == rank - 1 else "another"


def _drops(node: Node) -> bool:
    args = dict(zip(("input", "p", "training"), node.args, strict=False)) | dict(node.kwargs)
    return bool(args.get("training", True)) and args.get("p", 0.5) != 0


def _is_used(net: Net, node: Node, path: Sequence[Node], written: Sequence[Node]) -> bool:
    users = [user for user in node.users if user in net.live and user not in written]
    return any(user not in path for user in users)


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
    return ";".join([net.dtype, *parts])


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


def window(
    net: Net, attention: Attention, values: dict[Node, Any]
) -> tuple[GraphModule, list[torch.Tensor], str]:
    """Cut an attention out: a module, its arguments, and a text that is equal for equal forms.

    The window begins after layers, and has views, masks and rotations of its own.
    """
    inside = _inside(net, attention, values)
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
        and (node is attention.output or not live.isdisjoint(node.users))
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
