"""Replacements as custom ops of torch, so that Inductor compiles around them.

The pattern, run under fake tensors, gives the shapes, dtypes and strides of the results.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from passnet.errors import PassError
from passnet.passes.apply.axes import memory_order
from passnet.passes.apply.first_call import (
    checked_call,
    difference,
    memory_of,
    original_outputs,
    outputs_of,
    shared,
)
from passnet.passes.apply.rewrite import Site
from passnet.passes.apply.written_call import filled, written
from passnet.passes.epilogues import FUNCTION_OF, takes_epilogue, with_epilogue
from passnet.passes.kernel_list import known_kernels
from passnet.passes.kernel_op import name_of
from passnet.passes.match.activations import activation_of
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.guards import EXAMPLE, note_example_value
from passnet.passes.match.pattern import Pass, as_module

KINDS = ("Tensor", "SymInt", "float", "bool")
"""The types of an op's lists of arguments."""

_SYMBOLIC = torch.SymInt, torch.SymFloat, torch.SymBool

_is_written: Callable[[torch.Tensor], bool] = vars(torch)["_functionalize_has_data_mutation"]

_library = torch.library.Library("passnet", "FRAGMENT")
_ops: dict[str, Pass] = {}


def wrap_sites(
    module: torch.fx.GraphModule,
    sites: Sequence[Site],
    example_inputs: Sequence[Any],
    is_judged: bool = False,
    sees_through: bool = False,
    is_cached: bool = False,
) -> None:
    """Turn the call at every site into a call of a custom op, and recompile the module.

    The op gives results the pattern's strides; its fake form runs the pattern. Unless judged, a
    replacement whose first call returns another form gives way to the pattern. With `sees_through`,
    replacements of torch ops and C++ kernels stay calls, into which Inductor looks; of a graph
    that `is_cached`, only if another process can call the kernels without a trace. A pattern that
    returns a view of an argument is a PassError.
    """
    if not sites:
        return
    params = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, value in zip(params, example_inputs, strict=True):
        node.meta.setdefault(EXAMPLE, value)
    finishing: list[tuple[Site, torch._ops.OpOverload]] = []
    for site in sites:
        for node in site.prepared:
            note_example_value(node)
        called = _called(site) if sees_through else None
        if called is None or (is_cached and not _are_found_later(site, called.kernels)):
            _wrap(site, is_judged)
        elif called.finishing:
            finishing.append((site, called.finishing))
    _take_activations(module.graph, finishing)
    module.graph.lint()
    module.recompile()


def _take_activations(
    graph: torch.fx.Graph, finishing: Sequence[tuple[Site, torch._ops.OpOverload]]
) -> None:
    """Let the kernels at some sites compute the activation of their results, where one follows and
    nothing else reads them.
    """
    index = GraphIndex(graph) if finishing else None
    for site, kernel in finishing:
        node, users = site.node, [*site.node.users]
        assert index is not None, "there are sites"
        if len(users) != 1 or users[0] not in index.calls:
            continue
        activation = activation_of(users[0], index.calls[users[0]], node)
        if function := FUNCTION_OF.get(activation[:2]) if activation else None:
            assert callable(node.target), "a site is a call of a function"
            node.target = with_epilogue(node.target, kernel, function)
            users[0].replace_all_uses_with(node)
            graph.erase_node(users[0])


class _Called(TorchDispatchMode):
    """A mode that notes kernels, and whether ops are called that are neither torch's nor kernels,
    or a kernel with memory that it writes under two names.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kernels: set[torch._ops.OpOverload] = set()
        self.are_others = False
        self.finishing: torch._ops.OpOverload | None = None
        """The kernel that wrote the results last, if it can compute an activation of them."""
        self.written: tuple[StorageWeakRef, ...] = ()
        """The memory that it wrote."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func.namespace == "passnet_kernel":
            memory = [memory_of(value) for value in args if isinstance(value, torch.Tensor)]
            params = zip(args, func._schema.arguments, strict=True)
            written = [
                memory_of(value) for value, p in params if p.alias_info and p.alias_info.is_write
            ]
            self.are_others |= any(memory.count(each) > 1 for each in written)
            is_alone = takes_epilogue(func) and func not in self.kernels and len(written) == 1
            self.finishing, self.written = (func if is_alone else None), tuple(written)
            self.kernels.add(func)
        else:
            self.are_others |= func.namespace not in ("aten", "prims")
            if not func.is_view:
                self.finishing = None
        return func(*args, **(kwargs or {}))


def kernel_ops_of(source: Pass) -> set[torch._ops.OpOverload]:
    """Return the ops of the kernels that loading a pass's folder made."""
    ops = set()
    for make in source.kernel_ops:
        with suppress(PassError):  # not every kernel can be an op
            ops.add(make())
    return ops


def _are_found_later(site: Site, kernels: Collection[torch._ops.OpOverload]) -> bool:
    """Return whether a later process will have kernels, once it has made the same pass.

    Those that the first call made are listed for it, unless loading the folder made some, too: then
    no list's token is in the `uuid()`. With sizes that vary, none may be the right one for all.
    """
    late = set(kernels) - kernel_ops_of(site.source)
    if not late:
        return True
    values = [node.meta.get(EXAMPLE) for node in site.node.all_input_nodes]
    vary = any(
        isinstance(v, _SYMBOLIC) or getattr(v, "_has_symbolic_sizes_strides", False) for v in values
    )
    if vary or site.source.kernel_ops or not site.source.digest:  # of no folder, no list is made
        return False
    return known_kernels(site.source.digest, map(name_of, late)) != ""


def _called(site: Site) -> _Called | None:
    """Return what a replacement calls, or None if that is not just torch ops and kernels, if it
    writes into an argument, or changes the original's form.
    """
    pattern, function = site.source.pattern, site.node.target
    assert callable(function), "a site is a call of a function"
    made: list[FunctionalTensor] = []
    called = _Called()
    # functional tensors refuse to tell where they lie; fake ones say 0, which a kernel would read
    with FakeTensorMode(), FunctionalTensorMode(), called:

        def like(node: torch.fx.Node) -> Any:
            value = node.meta[EXAMPLE]
            if not isinstance(value, torch.Tensor):
                return _hint(value)
            form = tuple(map(_hint, value.shape)), tuple(map(_hint, value.stride()))
            tensor = torch.empty_strided(*form, dtype=value.dtype, device=value.device)
            assert isinstance(tensor, FunctionalTensor), "made in its mode"
            made.append(tensor)
            return tensor

        try:
            original = original_outputs(pattern, torch.fx.map_arg(site.pattern_arguments, like))
            inputs = [*made]
            made.clear()
            result = function(*torch.fx.map_arg(site.node.args, like))
            results = outputs_of(result)
            why = difference(results, original) or shared(results, made, original, inputs)
            writes = any(_is_written(own.elem) for own in made)
        except Exception:  # noqa: BLE001 (boundary: whatever a replacement raises)
            return None
    if why is not None or writes or called.are_others:
        return None
    is_float = [result.dtype for result in results] == [torch.float32]
    if not is_float or [*map(memory_of, results)] != [*called.written]:
        called.finishing = None
    return called


def _hint(value: Any) -> Any:
    """Return the example of a symbolic number, without a guard on it."""
    return value.node.hint if isinstance(value, _SYMBOLIC) else value


def _wrap(site: Site, is_judged: bool) -> None:
    node = site.node
    read: list[torch.fx.Node] = []
    torch.fx.map_arg(site.inputs, read.append)
    values = list(dict.fromkeys(read + node.all_input_nodes))
    kinds = [_kind(value) for value in values]
    lists = {kind: [v for v, k in zip(values, kinds, strict=True) if k == kind] for kind in KINDS}
    places = {v: (kind, n) for kind, own in lists.items() for n, v in enumerate(own)}
    # layouts, because the first call at a site settles those of its results
    layouts = [_layout(value) for value in lists["Tensor"]]
    form = json.dumps([written(site.inputs, places), written(node.args, places), layouts])
    node.target = op_of(site.source, is_judged)
    node.args = (*lists.values(), form)


def _layout(node: torch.fx.Node) -> str:
    value = node.meta.get(EXAMPLE)
    if not isinstance(value, torch.Tensor):
        return ""
    return f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device}"


def _kind(node: torch.fx.Node) -> str:
    value = node.meta.get(EXAMPLE)
    if isinstance(value, (bool, torch.SymBool)):
        return "bool"
    if isinstance(value, (int, torch.SymInt)):
        return "SymInt"
    if isinstance(value, (float, torch.SymFloat)):
        return "float"
    return "Tensor"


def op_of(source: Pass, is_judged: bool = False) -> Any:
    """Return the op of a pass, and register it first where that is due.

    A pass of a folder has the same op in every process, by which a cached graph calls it. The op
    takes the tensors and numbers of a call, and the text of its form.
    """
    digest = source.digest or f"{id(source):x}"
    name = re.sub(r"[^0-9a-zA-Z_]", "_", f"{source.name}_{digest}") + "_judged" * is_judged
    if name not in _ops:
        results = ", ".join(["Tensor"] * len(source.pattern.outputs))
        params = ", ".join(f"{kind}[] {kind.lower()}s" for kind in KINDS)
        several = f"({results})" if len(source.pattern.outputs) > 1 else results
        _library.define(
            f"{name}({params}, str form) -> {several}", tags=[torch.Tag.needs_exact_strides]
        )
        call = _implementation(source, is_judged)
        _library.impl(name, call, "CompositeExplicitAutograd")
        torch.library.register_fake(f"passnet::{name}", _fake(source), lib=_library)
        _ops[name] = source  # which keeps its identity while the op is there
    return getattr(torch.ops.passnet, name).default


def _implementation(source: Pass, is_judged: bool) -> Callable[..., Any]:
    """Return the replacement as a function of the op's arguments."""
    calls: dict[str, Callable[..., Any]] = {}

    def implementation(tensors: Any, ints: Any, floats: Any, bools: Any, form: str) -> Any:
        if form not in calls:
            calls[form] = _call_at(source, form, is_judged)
        results = calls[form]({"Tensor": tensors, "SymInt": ints, "float": floats, "bool": bools})
        return results[0] if len(results) == 1 else results

    return implementation


def _call_at(source: Pass, form: str, is_judged: bool) -> Callable[..., tuple[Any, ...]]:
    """Return the replacement for calls of one form, with results in the pattern's strides."""
    read, own, _ = json.loads(form)
    pattern, function = source.pattern, source.replacement
    examples: list[torch.Tensor] = []

    def laid_out(*filled: Any) -> tuple[Any, ...]:
        results = outputs_of(function(*filled))
        if len(results) != len(examples):
            return results
        return tuple(map(_with_strides_of, results, examples))

    checked = checked_call(source.name, pattern, laid_out)

    def call(values: Mapping[str, Sequence[Any]]) -> tuple[Any, ...]:
        if not examples:
            outputs = original_outputs(pattern, filled(read, values))
            examples.extend(torch.empty_like(output) for output in outputs)
        if is_judged:
            return laid_out(*filled(own, values))
        return outputs_of(checked(filled(read, values), filled(own, values)))

    return call


def _with_strides_of(result: Any, example: torch.Tensor) -> Any:
    """Return a result in the memory order of an example, copied if it has another."""
    if not isinstance(result, torch.Tensor) or result.dim() != example.dim():
        return result
    if result.shape == example.shape:
        if result.stride() == example.stride():
            return result
        strided = torch.empty_like(example, dtype=result.dtype, device=result.device)
        return strided.copy_(result)
    order, back = memory_order(example)
    return result.permute(order).contiguous().permute(back)


def _fake(source: Pass) -> Callable[..., Any]:
    """Return the pattern as a function of the op's arguments."""
    pattern = source.pattern
    module = as_module(pattern)
    index = GraphIndex(pattern.body[0].graph)
    written_groups = {index.group(writer) for writer in index.writers}
    is_written_into = [index.group(param) in written_groups for param in pattern.params]

    def fake(tensors: Any, ints: Any, floats: Any, bools: Any, form: str) -> Any:
        values = {"Tensor": tensors, "SymInt": ints, "float": floats, "bool": bools}
        inputs = [
            value.clone() if is_written and isinstance(value, torch.Tensor) else value
            for value, is_written in zip(
                filled(json.loads(form)[0], values), is_written_into, strict=True
            )
        ]  # what is written into is written back by the graph, and not by the op
        results = module(*inputs)
        storages = set(map(memory_of, tensors))
        for result in results:
            if memory_of(result) in storages:
                raise PassError(
                    f"{source.name}: the pattern returns a view of its argument, which an op "
                    "cannot; use the eager residual, or let the pattern go on to a new value"
                )
        return results[0] if len(results) == 1 else tuple(results)

    return fake
