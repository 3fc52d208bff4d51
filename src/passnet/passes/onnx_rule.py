"""A pass as a rewrite rule of onnxscript, for nets that are ONNX files already.

The rule's pattern is what `torch.onnx` makes of the pass's pattern. At a match the replacement is
exported for the shapes that the file gives.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import takewhile
from typing import Any

import torch
from torch.export import Dim, export

from passnet.errors import PassError, PassnetError, boundary
from passnet.passes.apply.first_call import original_outputs, outputs_of
from passnet.passes.load import Folders, loaded_passes
from passnet.passes.match.pattern import Pass, as_module
from passnet.passes.onnx_op import onnx_program

_SIZES = (7, 11, 13, 17, 19, 23, 29, 31)
"""Stand-ins for sizes that vary: primes, which guards on multiples and on 1 refuse."""


def rewrite_rules(passes: Folders, *example: Any) -> list[Any]:
    """Return the passes of some folders as `onnxscript.rewriter.RewriteRule`s, in order.

    Args:
        passes: a pass folder, or several, whose patterns take the same arguments.
        *example: arguments of the pattern. The rules match literals as they are here, and tensors
            of any size.

    Raises:
        InputError: a folder is malformed.
        PassError: onnxscript is missing, or a pattern cannot be exported.
    """
    with boundary(PassError, "rewrite rules need onnx, onnxscript"):
        import onnxscript.rewriter  # noqa: F401
    loaded = [pass_ for pass_ in loaded_passes(passes) if isinstance(pass_, Pass)]
    return [_rule(pass_, example) for pass_ in loaded]


class _Call(torch.nn.Module):
    """A function of a pattern's tensors, with the literals of an example."""

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
    # not the same tensor twice, which would be one input
    tensors = tuple(value.clone() for value in example if isinstance(value, torch.Tensor))
    call = _Call(function, example)
    dims = None if dims is None else (tuple(dims),)
    with torch.no_grad(), boundary(PassError, f"exporting {name}"):
        program = export(call, tensors, strict=False, dynamic_shapes=dims)
        return onnx_program(program).model.graph


def _rule(pass_: Pass, example: Sequence[Any]) -> Any:
    from onnxscript.rewriter import MatchResult, RewriteRule

    names = [str(param.target) for param in pass_.pattern.params]
    if len(example) != len(names):
        raise PassError(f"{pass_.name}: its pattern takes {', '.join(names)}; give one of each")
    graph = _exported(pass_.name, as_module(pass_.pattern), example)
    if len(graph.outputs) != len(pass_.pattern.outputs):
        raise PassError(f"{pass_.name}: its pattern writes into an argument, which no rule can")
    pairs = zip(names, example, strict=True)
    tensors = [name for name, value in pairs if isinstance(value, torch.Tensor)]

    @cache
    def replacement(*forms: tuple[Any, ...]) -> Any:
        """Return the replacement's graph for the dtypes and shapes of a match, or a refusal."""
        try:
            return _replacement(pass_, names, *_values(example, forms))
        except PassnetError as cause:
            return str(cause)

    def find(op: Any, *inputs: Any) -> Any:
        return _replay(op, graph, inputs, _constant_pattern)

    def check(context: Any, **bound: Any) -> Any:
        # the replacement comes where the first output was computed
        before = takewhile(lambda node: node is not context.root, context.graph_or_function)
        computed = {None, *before}
        inputs = [bound[name] for name in tensors]
        if not all(value.producer() in computed for value in inputs):
            return MatchResult().fail("an argument is computed after the first output")
        made = replacement(*map(_form, inputs))
        return MatchResult().fail(made) if isinstance(made, str) else True

    def replace(op: Any, **bound: Any) -> Any:
        inputs = [bound[name] for name in tensors]
        return _replay(op, replacement(*map(_form, inputs)), inputs, partial(_constant, op))

    kind = inspect.Parameter.POSITIONAL_ONLY  # onnxscript reads the names of variables there
    params = [inspect.Parameter(name, kind) for name in ("op", *tensors)]
    find.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
    return RewriteRule(find, replace, check, name=pass_.name)


def _form(value: Any) -> tuple[Any, ...]:
    """Return dtype and sizes of a value of a file, None if not known; sizes that vary are names."""
    if value.dtype is None or value.shape is None:
        return None, ()
    sizes = (size if isinstance(size, int) else str(size) for size in value.shape)
    return getattr(torch, value.dtype.name.lower(), None), tuple(sizes)


def _values(example: Sequence[Any], forms: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return arguments in the forms of a match, and which of their sizes vary, None for none."""
    names = dict.fromkeys(size for _, shape in forms for size in shape if isinstance(size, str))
    if len(names) > len(_SIZES) or any(dtype is None for dtype, _ in forms):
        raise PassError("a dtype or shape is not known; run onnx's shape inference first")
    sizes: dict[Any, int] = dict(zip(names, _SIZES, strict=False))
    tensors = iter(
        [
            torch.zeros([sizes.get(size, size) for size in shape], dtype=dtype)
            for dtype, shape in forms
        ]
    )
    values = [next(tensors) if isinstance(value, torch.Tensor) else value for value in example]
    dims = [{n: Dim.DYNAMIC for n, size in enumerate(shape) if size in sizes} for _, shape in forms]
    return values, dims if sizes else None


def _replacement(pass_: Pass, names: Sequence[str], values: Sequence[Any], dims: Any) -> Any:
    """Return the graph of a replacement; PassError where guards refuse it or outputs differ."""
    named = dict(zip(names, values, strict=True))
    refusal = pass_.guards.refusal(named) if pass_.guards else None
    if refusal is not None:
        raise PassError(f"{refusal.name}: expected {refusal.expected}, found {refusal.actual}")
    arguments = torch.fx.GraphModule(torch.nn.Module(), pass_.args_graph)

    def function(*given: Any) -> Any:
        return pass_.replacement(*outputs_of(arguments(*given)))

    with torch.no_grad(), boundary(PassError, f"calling {pass_.name}"):
        original, results = original_outputs(pass_.pattern, values), outputs_of(function(*values))
        if [(x.dtype, x.shape) for x in original] != [(x.dtype, x.shape) for x in results]:
            raise PassError("the replacement returns other shapes or dtypes than the pattern")
    return _exported(pass_.name, function, values, dims)


def _constant(op: Any, value: Any) -> Any:
    return op.Constant(value=value.const_value)


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
