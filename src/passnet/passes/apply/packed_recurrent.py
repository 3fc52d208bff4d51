"""LSTMs, GRUs and RNNs by weights that are packed once, and their cells.

Torch's own layers put weights into another order at each call, and Inductor leaves them as they
are or unrolls all steps. Here each layer and direction is one op, which computes the gates of the
input for all steps at once.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.passes.apply.packed_op import example_of, is_plain, is_weight
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.guards import EXAMPLE

KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@dataclass(frozen=True)
class Recurrent:
    """A call of recurrent layers, or of a cell.

    Args:
        node: the call.
        kind: one of `KINDS`.
        x: the input; (batch, inputs) of a cell.
        hidden, cell: the states before, (layers and directions, batch, size), without the first
            axis of a cell; `cell` of an LSTM.
        weights: of each layer and direction, as torch orders them.
        num_directions: 0 for a cell.
    """

    node: torch.fx.Node
    kind: str
    x: torch.fx.Node
    hidden: torch.fx.Node
    cell: torch.fx.Node | None
    weights: list[tuple[torch.fx.Node, ...]]
    num_directions: int
    batch_first: bool = False


def recurrent_layers(index: GraphIndex) -> Iterator[Recurrent]:
    """Find the calls that the op can take over, with weights that nothing writes."""
    written = {index.group(node) for node in index.writers}
    for node, call in index.calls.items():
        kind = call.label.removeprefix("torch.").removesuffix("_cell")
        if not call.label.startswith("torch.") or kind not in KINDS:
            continue
        values = dict(call.arguments)
        is_cell = call.label.endswith("_cell")
        found = _cell(node, kind, values) if is_cell else _layers(node, kind, values)
        if found and written.isdisjoint(index.group(each) for each in sum(found.weights, ())):
            yield found


def _cell(node: torch.fx.Node, kind: str, values: Mapping[str, Any]) -> Recurrent | None:
    weights = [values.get(name) for name in ("w_ih", "w_hh", "b_ih", "b_hh")]
    given = tuple(each for each in weights if each is not None)
    states = _states(kind, values.get("hx"))
    is_known = _is_dense(values.get("input"), 2) and _are_weights(given)
    if not is_known or not states or not all(_is_dense(state, 2) for state in states):
        return None
    if kind == "lstm" and not _takes_parts(node):
        return None
    hidden, cell = (*states, None)[:2]
    return Recurrent(node, kind, values["input"], hidden, cell, [given], 0)


def _layers(node: torch.fx.Node, kind: str, values: Mapping[str, Any]) -> Recurrent | None:
    params, batch_first = values.get("params"), values.get("batch_first")
    num_directions = 2 if values.get("bidirectional") else 1
    num, count = values.get("num_layers"), 4 if values.get("has_biases") else 2
    states = _states(kind, values.get("hx"))
    drops = values.get("train") and values.get("dropout")
    is_whole = isinstance(params, tuple) and type(num) is int and not drops
    if not is_whole or len(params) != num * num_directions * count:  # others project their states
        return None
    weights = [params[first : first + count] for first in range(0, len(params), count)]
    is_known = _is_dense(values.get("input"), 3) and all(map(_are_weights, weights))
    if not is_known or not states or not all(_is_dense(state, 3) for state in states):
        return None
    results = node.meta.get(EXAMPLE)
    if not _takes_parts(node) or not isinstance(results, tuple):
        return None
    first = results[0].transpose(0, 1) if batch_first else results[0]
    if not all(each.is_contiguous() for each in (first, *results[1:])):
        return None
    hidden, cell = (*states, None)[:2]
    x, is_first = values["input"], bool(batch_first)
    return Recurrent(node, kind, x, hidden, cell, weights, num_directions, is_first)


def _states(kind: str, value: Any) -> tuple[Any, ...]:
    """Return the states before: of an LSTM two; none where they are not known."""
    if kind != "lstm":
        return (value,)
    return value if isinstance(value, tuple) and len(value) == 2 else ()


def _is_dense(node: Any, rank: int) -> bool:
    value = example_of(node)
    return value is not None and is_plain(value) and value.dim() == rank


def _are_weights(nodes: Sequence[Any]) -> bool:
    return len(nodes) in (2, 4) and all(map(is_weight, nodes, (2, 2, 1, 1)))


def _takes_parts(node: torch.fx.Node) -> bool:
    """Return whether only parts of a call's tuple are read."""
    parts = [user.args[1] for user in node.users if user.target is operator.getitem]
    return len(parts) == len(node.users) and all(part in (0, 1, 2) for part in parts)


def put_recurrent(
    graph: torch.fx.Graph, call: Recurrent, results: dict[torch.fx.Node, torch.fx.Node]
) -> None:
    """Put the op in the place of a call, for each layer and direction.

    `results` are the nodes that stand in the place of others; what it replaces is added to them.
    """
    node = call.node
    x, hidden = (results.get(each, each) for each in (call.x, call.hidden))
    cell = results.get(call.cell, call.cell) if call.cell else None
    with graph.inserting_before(node):
        parts = _put_layers(graph, call, x, hidden, cell)
    if isinstance(node.meta[EXAMPLE], torch.Tensor):  # a cell of one state
        replaced = {node: parts[1]}
    else:
        returned = parts if call.num_directions else parts[1:]
        replaced = {user: returned[operator.index(user.args[1])] for user in node.users}  # type: ignore[arg-type]
    for old, new in replaced.items():
        new.meta[EXAMPLE] = old.meta[EXAMPLE]
        old.replace_all_uses_with(new)
    for old in {**replaced, node: None}:
        graph.erase_node(old)
    results.update(replaced)


def _put_layers(
    graph: torch.fx.Graph, call: Recurrent, x: Any, hidden: Any, cell: Any
) -> list[torch.fx.Node]:
    """Put in the ops; return the nodes of all hidden states, and of the last states."""
    op = torch.ops.passnet_packed.recur.default

    def recur(x: torch.fx.Node, number: int, hidden: Any, cell: Any) -> tuple[torch.fx.Node, ...]:
        is_reversed = call.num_directions == 2 and number % 2
        form = f"{call.kind} {int(is_reversed)}"
        found = graph.call_function(op, (x, [*call.weights[number]], hidden, cell, form))
        return tuple(graph.call_function(operator.getitem, (found, part)) for part in range(3))

    if not call.num_directions:
        return [*recur(graph.call_method("unsqueeze", (x, 0)), 0, hidden, cell)]
    if call.batch_first:
        x = graph.call_method("transpose", (x, 0, 1))
    ends: list[tuple[torch.fx.Node, ...]] = []
    for layer in range(0, len(call.weights), call.num_directions):
        outputs = []
        for number in range(layer, layer + call.num_directions):
            states = [
                state and graph.call_function(operator.getitem, (state, number))
                for state in (hidden, cell)
            ]
            output, *end = recur(x, number, *states)
            outputs.append(output)
            ends.append(tuple(end if call.cell else end[:1]))
        x = graph.call_function(torch.cat, (outputs, -1)) if len(outputs) == 2 else outputs[0]
    if call.batch_first:
        x = graph.call_method("transpose", (x, 0, 1))
    return [x, *(graph.call_function(torch.stack, ([*of],)) for of in zip(*ends, strict=True))]
