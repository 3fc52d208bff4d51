"""Passes for graphs of library calls and views alone, which make these calls directly.

Torch's Python around the calls, and ops that return their argument as it is, are left out.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from passnet.errors import AuthorError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph
from passnet.graph.values.fake import fake_input, restored_state
from passnet.inductor.generated_code import contiguous
from passnet.passes.codegen.pass_text import form_key, pass_text, pattern_text, table_text
from passnet.passes.files import Files

VIEWS = ("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "chunk", "split", "t")
VIEWS += ("expand", "contiguous", "unflatten", "flatten", "select", "to")
"""Ops with methods that take ATen's arguments; a result in its argument's form is that argument."""

FUNCTIONS = {name: f"torch.{name}" for name in ("matmul", "mm", "bmm", "addmm", "baddbmm")}
FUNCTIONS |= {name: f"torch.{name}" for name in ("mul", "add", "conv1d", "conv2d", "conv3d")}
FUNCTIONS |= {"linear": "torch._C._nn.linear", "softmax": "torch.softmax"}
FUNCTIONS["scaled_dot_product_attention"] = "torch._C._nn.scaled_dot_product_attention"
"""Functions of torch by the name of the ATen op that they call."""


@dataclass(frozen=True, slots=True)
class LibraryForm:
    """A graph, the lines that make its calls, and the texts of its results."""

    graph: Graph
    lines: tuple[str, ...]
    returned: tuple[str, ...]


def library_form(graph: Graph, where: str) -> LibraryForm:
    """Return a graph's ATen ops as lines of Python; raise AuthorError if that is impossible."""
    annotations = {param.name: param.annotation for param in graph.program.params}
    names = [param.name for param in graph.program.params]
    with boundary(AuthorError, f"{where}: cannot be traced"), restored_state(), torch.no_grad():
        with FakeTensorMode():
            inputs = [fake_input(spec, annotations[spec.name]) for spec in graph.tensors]
        traced = make_fx(build(graph.program), tracing_mode="fake", pre_dispatch=True)(*inputs)
    traced.graph.eliminate_dead_code()
    placeholders = traced.graph.find_nodes(op="placeholder")
    values: dict[torch.fx.Node, str] = dict(zip(placeholders, names, strict=True))
    lines: list[str] = []
    for node in traced.graph.nodes:
        if node.op == "get_attr":
            raise AuthorError(f"{where}: it holds a value of its own, {node.target}")
        if node.op == "call_function":
            same = _argument_it_is(node)
            if same is not None:
                values[node] = values[same]
                continue
            values[node] = f"out_{len(lines)}"
            lines.append(f"{values[node]} = {_call(node, values, where)}")
    returned = torch.utils._pytree.tree_leaves(traced.graph.output_node().args)
    return LibraryForm(
        graph, tuple(lines), tuple(_text(value, values, where) for value in returned)
    )


def library_passes(forms: Sequence[LibraryForm]) -> Files:
    """Return the passes for some graphs, one for all graphs with the same ops."""
    by_pattern: dict[str, list[LibraryForm]] = {}
    for form in forms:
        by_pattern.setdefault(pattern_text(form.graph), []).append(form)
    return {
        f"Library{number}.py": _pass_text(pattern, group)
        for number, (pattern, group) in enumerate(by_pattern.items())
    }


def _pass_text(pattern: str, forms: Sequence[LibraryForm]) -> str:
    by_form = {tuple(map(form_key, form.graph.tensors)): form for form in forms}
    names = [param.name for param in forms[0].graph.program.params]
    params = ", ".join(names)
    functions = [
        "\n".join([f"def form_{number}({params}):", *(f"    {line}" for line in form.lines)])
        + f"\n    return {', '.join(form.returned)}\n\n\n"
        for number, form in enumerate(by_form.values())
    ]
    call = "form_0"
    if len(by_form) > 1:
        read = _telling(list(by_form))
        key = ", ".join(f"{names[position]}.shape, {names[position]}.dtype" for position in read)
        call = f"BY_FORM[({key})]"
        table = {
            ", ".join(form[position] for position in read): f"form_{number}"
            for number, form in enumerate(by_form)
        }
        functions.append(f"{table_text('BY_FORM', table)}  # the arguments that tell them apart\n")
    keys = [", ".join(form) for form in by_form]
    strides = [[contiguous(spec.shape) for spec in form.graph.tensors] for form in by_form.values()]
    return pass_text(
        "Calls of libraries without what is around them",
        pattern,
        names,
        {key: f"form_{number}" for number, key in enumerate(keys)},
        [f"return {call}({params})"],
        dict(zip(keys, strides, strict=True)),
        definitions="".join(functions),
    )


def _telling(keys: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the arguments that tell forms apart: one if one does, else all."""
    for position in range(len(keys[0])):
        if len({key[position] for key in keys}) == len(keys):
            return [position]
    return list(range(len(keys[0])))


def _argument_it_is(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the argument that an op returns unchanged; None if it makes a value."""
    name, source = _name(node), node.args[0] if node.args else None
    if not isinstance(source, torch.fx.Node):
        return None
    if name == "dropout":
        return None if node.args[2] else source
    result, source_value = node.meta.get("val"), source.meta.get("val")
    if name not in VIEWS or not (isinstance(result, Tensor) and isinstance(source_value, Tensor)):
        return None
    forms = [(value.dtype, value.shape, value.stride()) for value in (result, source_value)]
    return source if forms[0] == forms[1] else None


def _name(node: torch.fx.Node) -> str:
    """Return the name of an ATen op; "" for any other target."""
    target = node.target
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return ""
    return str(target.overloadpacket).removeprefix("aten.")


def _call(node: torch.fx.Node, values: Mapping[torch.fx.Node, str], where: str) -> str:
    """Return an op as text: a method or function of torch if possible, which is faster."""
    args = [_text(arg, values, where) for arg in node.args]
    kwargs = [f"{name}={_text(value, values, where)}" for name, value in node.kwargs.items()]
    if node.target is operator.getitem:
        return f"{args[0]}[{args[1]}]"
    name = _name(node)
    if not name:
        raise AuthorError(f"{where}: {node.target} is no op of ATen")
    if name in VIEWS:
        return f"{args[0]}.{name}({', '.join([*args[1:], *kwargs])})"
    overload = f"torch.ops.{node.target}"
    return f"{FUNCTIONS.get(name, overload)}({', '.join([*args, *kwargs])})"


def _text(value: Any, values: Mapping[torch.fx.Node, str], where: str) -> str:
    """Return a value of the traced graph as text."""
    if isinstance(value, torch.fx.Node):
        return values[value]
    if isinstance(value, (list, tuple)):
        parts = [_text(part, values, where) for part in value]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    raise AuthorError(f"{where}: {value!r} has no text")
