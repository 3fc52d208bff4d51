"""A pass as a rewrite rule of onnxscript, for nets that are ONNX files already.

The rule's pattern is what `torch.onnx` makes of the pass's pattern. At a match the replacement is
exported for the shapes that the file gives.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.export import Dim, export

from passnet.errors import PassError, PassnetError, boundary
from passnet.passes.apply.first_call import original_outputs
from passnet.passes.load import Folders, loaded_passes
from passnet.passes.match.pattern import Pass, as_module
from passnet.passes.onnx_op import onnx_program

_SIZES = (7, 11, 13, 17, 19, 23, 29, 31)
"""Sizes that stand for those which vary: no guard on multiples or on 1 takes them."""


def rewrite_rules(passes: Folders, *example: Any) -> list[Any]:
    """Return the passes of some folders as `onnxscript.rewriter.RewriteRule`s, in order.

    Args:
        passes: a pass folder, or several, whose patterns take the same arguments.
        *example: arguments of the pattern: tensors, whose sizes do not matter where the pattern
            has none, and literals, with which alone the rules match.

    Raises:
        InputError: a folder is malformed.
        PassError: onnxscript is missing, a pattern cannot be exported, or it is of no fixed form.
    """
    with boundary(PassError, "rewrite rules need onnx, onnxscript"):
        import onnxscript.rewriter  # noqa: F401
    loaded = [pass_ for pass_ in loaded_passes(passes) if isinstance(pass_, Pass)]
    return [_rule(pass_, example) for pass_ in loaded]


class _Call(torch.nn.Module):
    """A function of a pattern's arguments, of which the literals are given."""

    def __init__(self, function: Callable[..., Any], example: Sequence[Any]) -> None:
        super().__init__()
        self._function, self._example = function, example
        self.training = False

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Call it with the tensors in their places."""
        remaining = iter(tensors)
        values = (
            next(remaining) if isinstance(value, torch.Tensor) else value for value in self._example
        )
        return self._function(*values)


def _exported(
    name: str, function: Callable[..., Any], example: Sequence[Any], dims: Any = None
) -> Any:
    """Return the ONNX graph of a function of a pattern's arguments."""
    tensors = tuple(value for value in example if isinstance(value, torch.Tensor))
    call = _Call(function, example)
    with torch.no_grad(), boundary(PassError, f"exporting {name}"):
        program = export(call, tensors, strict=False, dynamic_shapes=dims and (dims,))
        return onnx_program(program).model.graph


def _rule(pass_: Pass, example: Sequence[Any]) -> Any:
    from onnxscript.rewriter import MatchResult, RewriteRule

    names = [str(param.target) for param in pass_.pattern.params]
    if len(example) != len(names):
        raise PassError(f"{pass_.name}: its pattern takes {', '.join(names)}; give one of each")
    graph = _exported(pass_.name, as_module(pass_.pattern), example)
    tensors = [
        name for name, value in zip(names, example, strict=True) if isinstance(value, torch.Tensor)
    ]

    @cache
    def replacement(forms: tuple[Any, ...]) -> Any:
        """Return the replacement's graph for the dtypes and shapes of a match, or a refusal."""
        values, dims = _values(example, forms)
        try:
            return _replacement(pass_, dict(zip(names, values, strict=True)), dims)
        except PassnetError as cause:
            return str(cause)

    def find(op: Any, *inputs: Any) -> Any:
        return _replay(op, graph, inputs, _constant_pattern)

    def check(context: Any, **bound: Any) -> Any:
        made = replacement(_forms(bound[name] for name in tensors))
        return MatchResult().fail(made) if isinstance(made, str) else True

    def replace(op: Any, **bound: Any) -> Any:
        inputs = [bound[name] for name in tensors]
        return _replay(
            op,
            replacement(_forms(inputs)),
            inputs,
            lambda value: op.Constant(value=value.const_value),
        )

    kinds = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("op", *tensors)
    ]
    find.__signature__ = inspect.Signature(kinds)  # type: ignore[attr-defined]
    return RewriteRule(find, replace, check, name=pass_.name)


def _forms(values: Any) -> tuple[Any, ...]:
    """Return dtype and sizes of values of a file: a size that varies is its name."""
    forms = []
    for value in values:
        shape = (
            None
            if value.shape is None
            else tuple(size if isinstance(size, int) else str(size) for size in value.shape)
        )
        forms.append((value.dtype, shape))
    return tuple(forms)


def _values(example: Sequence[Any], forms: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return arguments in the forms of a match, and which of their sizes vary."""
    remaining, sizes = iter(forms), {}
    values, dims = [], []
    for value in example:
        if isinstance(value, torch.Tensor):
            dtype, shape = next(remaining)
            if dtype is None or shape is None:
                raise PassError("a shape is not known; run onnx's shape inference first")
            for size in shape:
                if isinstance(size, str):
                    sizes.setdefault(size, _SIZES[len(sizes) % len(_SIZES)])
            static = [sizes.get(size, size) for size in shape]
            value = torch.zeros(static, dtype=getattr(torch, dtype.name.lower()))
            varying = {n: Dim.DYNAMIC for n, size in enumerate(shape) if size in sizes}
            dims.append(varying)
        values.append(value)
    return values, tuple(dims) if sizes else None


def _replacement(pass_: Pass, values: Mapping[str, Any], dims: Any) -> Any:
    """Return the graph of a replacement; PassError where guards refuse it or shapes differ."""
    refusal = pass_.guards.refusal(values) if pass_.guards else None
    if refusal is not None:
        raise PassError(f"{refusal.name}: expected {refusal.expected}, found {refusal.actual}")
    arguments = torch.fx.GraphModule(torch.nn.Module(), pass_.args_graph)

    def function(*given: Any) -> Any:
        prepared = arguments(*given)
        return pass_.replacement(*(prepared if isinstance(prepared, tuple) else (prepared,)))

    example = [*values.values()]
    with torch.no_grad(), boundary(PassError, f"calling {pass_.name}.pattern"):
        original_outputs(pass_.pattern, example)
    return _exported(pass_.name, function, example, dims)


def _constant_pattern(value: Any) -> Any:
    constant = value.const_value.numpy()
    if constant.ndim > 1:
        raise PassError("a constant of the pattern has several dimensions, which no rule matches")
    return constant.tolist()


def _replay(op: Any, graph: Any, inputs: Sequence[Any], constant: Callable[[Any], Any]) -> Any:
    """Call a graph's ops by a builder of onnxscript; return the outputs."""
    values: dict[Any, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for value in graph.initializers.values():
        values[value] = constant(value)
    for node in graph:
        given = [None if value is None else values[value] for value in node.inputs]
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        made = getattr(op, node.op_type)(
            *given, _domain=node.domain, _outputs=len(node.outputs), **attributes
        )
        made = [made] if len(node.outputs) == 1 else made
        values.update(zip(node.outputs, made, strict=True))
    return [values[value] for value in graph.outputs]
