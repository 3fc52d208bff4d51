"""Replacements as custom ops of torch, so that Inductor compiles around them.

The pattern, run under fake tensors, gives the shapes, dtypes and strides of the results.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from passnet.errors import PassError
from passnet.passes.apply.first_call import checked_call, difference, original_outputs, outputs_of
from passnet.passes.apply.rewrite import Site
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.guards import EXAMPLE
from passnet.passes.match.pattern import as_module

_library = torch.library.Library("passnet", "FRAGMENT")
_numbers = itertools.count()


def wrap_sites(
    module: torch.fx.GraphModule,
    sites: Sequence[Site],
    example_inputs: Sequence[Any],
    is_judged: bool = False,
    sees_through: bool = False,
) -> None:
    """Turn the call at every site into a call of a custom op, and recompile the module.

    The op gives results the pattern's strides; its fake form runs the pattern. Unless judged, a
    replacement whose first call returns another form gives way to the pattern. With `sees_through`,
    replacements of torch ops stay calls. A pattern that returns a view of an argument is a
    PassError.
    """
    if not sites:
        return
    params = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, value in zip(params, example_inputs, strict=True):
        node.meta.setdefault(EXAMPLE, value)
    for site in sites:
        if not (sees_through and _is_of_torch(site)):
            _wrap(site, is_judged)
    module.graph.lint()
    module.recompile()


class _Kernels(TorchDispatchMode):
    """A mode that notes whether a kernel is called."""

    is_called = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.is_called |= func.namespace not in ("aten", "prims")
        return func(*args, **(kwargs or {}))


def _is_of_torch(site: Site) -> bool:
    """Return whether a replacement calls torch ops alone and keeps the original's form."""
    pattern, function = site.source.pattern, site.node.target
    assert callable(function), "a site is a call of a function"
    # functional tensors refuse to tell where they lie; fake ones say 0, which a kernel would read
    with FakeTensorMode(), _Kernels() as kernels, FunctionalTensorMode():

        def like(node: torch.fx.Node) -> Any:
            value = node.meta[EXAMPLE]
            if not isinstance(value, torch.Tensor):
                return value
            form = tuple(map(int, value.shape)), tuple(map(int, value.stride()))
            tensor = torch.empty_strided(*form, dtype=value.dtype, device=value.device)
            assert isinstance(tensor, FunctionalTensor), "made in its mode"
            return tensor

        try:
            original = original_outputs(pattern, torch.fx.map_arg(site.pattern_arguments, like))
            result = function(*torch.fx.map_arg(site.node.args, like))
            why = difference(outputs_of(result), original)
        except Exception:  # noqa: BLE001 (boundary: whatever a replacement raises)
            return False
    return why is None and not kernels.is_called


def _wrap(site: Site, is_judged: bool) -> None:
    node = site.node
    read: list[torch.fx.Node] = []
    torch.fx.map_arg(site.inputs, read.append)
    values = list(dict.fromkeys(read + node.all_input_nodes))
    num_outputs = len(site.source.pattern.outputs)
    name = f"{re.sub(r'[^0-9a-zA-Z_]', '_', site.source.name)}_{next(_numbers)}"
    params = ", ".join(f"{_kind(value)} a{index}" for index, value in enumerate(values))
    results = "Tensor" if num_outputs == 1 else f"({', '.join(['Tensor'] * num_outputs)})"
    _library.define(f"{name}({params}) -> {results}", tags=[torch.Tag.needs_exact_strides])
    _library.impl(name, _implementation(site, values, is_judged), "CompositeExplicitAutograd")
    torch.library.register_fake(f"passnet::{name}", _fake(site, values), lib=_library)
    # The op's single result is bare, whatever the pattern's form; `only` after it hands that on.
    node.target = getattr(torch.ops.passnet, name).default
    node.args = tuple(values)


def _kind(node: torch.fx.Node) -> str:
    value = node.meta.get(EXAMPLE)
    if isinstance(value, (bool, torch.SymBool)):
        return "bool"
    if isinstance(value, (int, torch.SymInt)):
        return "SymInt"
    if isinstance(value, (float, torch.SymFloat)):
        return "float"
    return "Tensor"


def _implementation(site: Site, values: list[torch.fx.Node], is_judged: bool) -> Callable[..., Any]:
    """Return the replacement, with its literals filled in, as a function of the op's arguments."""
    function: Any = site.node.target
    read, own = site.pattern_arguments, site.node.args
    pattern = site.source.pattern
    positions = {value: index for index, value in enumerate(values)}
    examples: list[torch.Tensor] = []

    def laid_out(*filled: Any) -> tuple[Any, ...]:
        results = outputs_of(function(*filled))
        if len(results) != len(examples):
            return results
        return tuple(map(_with_strides_of, results, examples))

    checked = checked_call(site.source.name, pattern, laid_out)

    def implementation(*args: Any) -> Any:
        def filled(template: tuple[Any, ...]) -> Any:
            return torch.fx.map_arg(template, lambda value: args[positions[value]])

        if not examples:
            outputs = original_outputs(pattern, filled(read))
            examples.extend(torch.empty_like(output) for output in outputs)
        if is_judged:
            results = laid_out(*filled(own))
        else:
            results = outputs_of(checked(filled(read), filled(own)))
        return results[0] if len(results) == 1 else results

    return implementation


def _with_strides_of(result: Any, example: torch.Tensor) -> Any:
    """Return a result in the memory order of an example, copied if it has another."""
    if not isinstance(result, torch.Tensor) or result.dim() != example.dim():
        return result
    if result.shape == example.shape:
        if result.stride() == example.stride():
            return result
        strided = torch.empty_like(example, dtype=result.dtype, device=result.device)
        return strided.copy_(result)
    order = sorted(range(result.dim()), key=example.stride, reverse=True)
    back = [order.index(dim) for dim in range(result.dim())]
    return result.permute(order).contiguous().permute(back)


def _fake(site: Site, values: list[torch.fx.Node]) -> Callable[..., Any]:
    """Return the pattern as a function of the op's arguments."""
    pattern = site.source.pattern
    module = as_module(pattern)
    index = GraphIndex(pattern.body[0].graph)
    written_groups = {index.group(writer) for writer in index.writers}
    is_written_into = [index.group(param) in written_groups for param in pattern.params]

    def fake(*args: Any) -> Any:
        actual = dict(zip(values, args, strict=True))
        inputs = [
            value.clone() if is_written and isinstance(value, torch.Tensor) else value
            for value, is_written in zip(
                torch.fx.map_arg(site.inputs, actual.__getitem__), is_written_into, strict=True
            )
        ]  # what is written into is written back by the graph, and not by the op
        results = module(*inputs)
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        storages = {StorageWeakRef(tensor.untyped_storage()) for tensor in tensors}
        for result in results:
            if StorageWeakRef(result.untyped_storage()) in storages:
                raise PassError(
                    f"{site.source.name}: the pattern returns a view of its argument, which an op "
                    "cannot; use the eager residual, or let the pattern go on to a new value"
                )
        return results[0] if len(results) == 1 else tuple(results)

    return fake
