"""One op in the place of a step's attention (`step.attention_of_parts`) in its exported program."""

from collections.abc import Iterable
from typing import Any

import torch
import torch.fx

_ATEN = torch.ops.aten
_VIEWS = {_ATEN.unflatten.int, _ATEN.flatten.using_ints}


def fuse_attention_of_parts(graph: torch.fx.Graph) -> int:
    """Put the op `passnet_packed::attend` into a graph; return how many attentions it computes.

    Attentions with a bias or a cap of their scores stay.
    """
    softmaxes = [node for node in graph.nodes if node.target is _ATEN.softmax.int]
    count = sum(_fuse(graph, node) for node in softmaxes)
    graph.eliminate_dead_code()
    return count


def _fuse(graph: torch.fx.Graph, softmax: Any) -> bool:
    scores, mask = softmax.args[0], None
    if scores.target is _ATEN.where.ScalarOther:
        mask, scores, _ = scores.args
    joined = _before_views(scores)
    products = joined.args[0] if joined.target is _ATEN.cat.default else ()
    if not _are_all(products, _ATEN.matmul.default) or len(products) != 2:
        return False
    (query, past), (same, new) = (node.args for node in products)
    if query is not same or not _are_all((past, new), _ATEN.transpose.int):
        return False
    slices = [*_after_views(softmax).users]
    results = [user for node in slices for user in node.users]
    if not _are_all(slices, _ATEN.slice.Tensor) or not _are_all(results, _ATEN.matmul.default):
        return False
    sums = {user for node in results for user in node.users}
    if len(results) != 2 or len(sums) != 1 or not _are_all(sums, _ATEN.add.Tensor):
        return False
    [total] = sums
    values = {node.args[0]: node.args[1] for node in results}
    past_values, new_values = (values[node] for node in sorted(slices, key=_start_is_zero)[::-1])
    with graph.inserting_before(total):
        keys = past.args[0], new.args[0]
        args = query, keys[0], past_values, keys[1], new_values, mask
        made = graph.call_function(torch.ops.passnet_packed.attend.default, args)
    made.meta.update(total.meta)
    total.replace_all_uses_with(made)
    return True


def _start_is_zero(node: Any) -> bool:
    return isinstance(node.args[2], int) and node.args[2] == 0


def _are_all(nodes: Iterable[Any], target: object) -> bool:
    return all(node.target is target for node in nodes)


def _before_views(node: Any) -> Any:
    while node.target in _VIEWS:
        node = node.args[0]
    return node


def _after_views(node: Any) -> Any:
    while len(node.users) == 1 and next(iter(node.users)).target in _VIEWS:
        node = next(iter(node.users))
    return node
