"""A rewritten graph behind checks of our own, which cost a fraction of torch.compile's guards."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx

from passnet.passes.match.graph_index import GraphIndex

_FOR_CHECKS = {
    "plain": (torch.Tensor, torch.nn.Parameter),  # subclasses may do as they like
    "strided": torch.strided,
    "is_grad_enabled": torch.is_grad_enabled,
    "is_autocast_enabled": torch.is_autocast_enabled,
}


def guarded_call(
    original: torch.fx.GraphModule, rewritten: Callable[..., Any], example_inputs: Sequence[Any]
) -> Callable[..., Any]:
    """Return a callable of the rewritten graph; arguments of other forms go to the original graph.

    Tensors must be plain and strided, with the examples' shape, strides, dtype and device; other
    values must equal the examples. The original is also called under autocast, where a tensor needs
    a gradient, and where a written argument shares its storage. The checks cost about 0.25
    microseconds a tensor, and 0.2 a call.

    Examples:
        >>> net = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> call = guarded_call(net, lambda x: "rewritten", [torch.ones(2, 3)])
        >>> call(torch.zeros(2, 3)), call(-torch.ones(3))
        ('rewritten', tensor([0., 0., 0.]))
    """
    arguments = {f"a{number}": value for number, value in enumerate(example_inputs)}
    scope: dict[str, Any] = {"original": original.forward, "rewritten": rewritten} | _FOR_CHECKS
    checks, tensors = [], []
    for param, value in arguments.items():
        if isinstance(value, torch.Tensor):
            tensors.append(param)
            checks += _tensor_checks(param, value)
            scope |= {f"shape_{param}": value.shape, f"stride_{param}": value.stride()}
            scope |= {f"dtype_{param}": value.dtype, f"device_{param}": value.device}
        else:
            checks += [f"type({param}) is type_{param}", f"{param} == value_{param}"]
            scope |= {f"type_{param}": type(value), f"value_{param}": value}
    for device in sorted({arguments[param].device.type for param in tensors}):
        if torch.amp.is_autocast_available(device):
            checks.append(f"not is_autocast_enabled({device!r})")
    if tensors:
        needs_grad = " or ".join(f"{param}.requires_grad" for param in tensors)
        checks.append(f"not (is_grad_enabled() and ({needs_grad}))")
    if writes_arguments(original.graph):
        storages = ", ".join(f"{param}.untyped_storage().data_ptr()" for param in tensors)
        checks.append(f"len({{{storages}}}) == {len(tensors)}")
    params = ", ".join(arguments)
    text = (
        f"def call({params}):\n"
        f"    try:\n"
        f"        fits = {' and '.join(checks) or True}\n"
        f"    except RuntimeError:\n"  # as some sparse tensors raise, asked for their strides
        f"        fits = False\n"
        f"    if fits:\n"
        f"        return rewritten({params})\n"
        f"    return original({params})\n"
    )
    exec(text, scope)  # noqa: S102 (text of ours alone)
    call: Callable[..., Any] = scope["call"]
    return call


def _tensor_checks(param: str, value: torch.Tensor) -> list[str]:
    checks = [
        f"type({param}) in plain",
        f"{param}.dtype is dtype_{param}",
        f"{param}.is_cpu" if value.is_cpu else f"{param}.device == device_{param}",
        f"{param}.shape == shape_{param}",
        f"{param}.stride() == stride_{param}",
    ]
    if value.dim() < 2 or not all(value.stride()):
        checks.append(f"{param}.layout is strided")  # others have no strides, or but one above 0
    if value.is_complex():
        checks.append(f"not {param}.is_conj()")
    if value.is_complex() or not any(step % 2 for step in value.stride()):
        checks.append(f"not {param}.is_neg()")  # among reals only `imag`, of even strides, is
    return checks


def apart_call(original: Callable[..., Any], rewritten: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable of a rewritten graph; arguments that share memory go to the original."""

    def call(*arguments: Any) -> Any:
        return original(*arguments) if share_memory(arguments) else rewritten(*arguments)

    return call


def share_memory(values: Iterable[Any]) -> bool:
    """Return whether two of some values are tensors of one storage."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return len({tensor.untyped_storage()._cdata for tensor in tensors}) < len(tensors)


def writes_arguments(graph: torch.fx.Graph) -> bool:
    """Return whether a graph may write into one of its arguments."""
    index = GraphIndex(graph)
    written_groups = {index.group(writer) for writer in index.writers}
    return any(
        node.op == "placeholder" and index.group(node) in written_groups for node in graph.nodes
    )
