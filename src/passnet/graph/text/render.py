"""A `Program` as the text of a `model.py`; parsing it gives the same program."""

import math

from passnet.errors import GraphError
from passnet.graph import spec
from passnet.graph.fx.operators import IN_PLACE_TEXT, INFIX_TEXT, PREFIX_TEXT

_INDENT = " " * 8
_IMPORTS = {
    "torch": "import torch",
    "operator.": "import operator",
    "device(": "from torch import device",
    "inf": "from torch import inf",
}


def render_program(program: spec.Program) -> str:
    """Return a program's text; raise GraphError for a method without a receiver."""
    params = ["self"]
    for param in program.params:
        annotation = "" if param.annotation is None else f": {param.annotation}"
        params.append(param.name + annotation)
    body = "".join(f"{_INDENT}{render_statement(statement)}\n" for statement in program.body)
    text = (
        "class GraphModule(torch.nn.Module):\n"
        f"    def forward({', '.join(params)}):\n"
        f"{body}{_INDENT}return {render_arg(spec.Sequence('tuple', program.outputs))}\n"
    )
    imports = [line for sign, line in _IMPORTS.items() if sign in text]
    return "\n".join(imports) + "\n\n\n" + text


def render_statement(statement: spec.Statement) -> str:
    """Return a statement as one line."""
    if isinstance(statement, spec.Alias):
        return f"{statement.output} = {statement.source}"
    if isinstance(statement, spec.Release):
        return " = ".join((*statement.names, "None"))
    in_place = _render_in_place(statement)
    if in_place is not None:
        return in_place
    call = _render_call(statement)
    return call if statement.output is None else f"{statement.output} = {call}"


def _render_in_place(op: spec.Op) -> str | None:
    name = op.target.removeprefix("operator.")
    if op.target == "operator.setitem" and op.output is None and isinstance(op.args[0], spec.Ref):
        return f"{op.args[0].name}[{_render_index(op.args[1])}] = {render_arg(op.args[2])}"
    is_in_place = op.target.startswith("operator.") and name in IN_PLACE_TEXT
    if is_in_place and len(op.args) == 2 and op.args[0] == spec.Ref(op.output or ""):
        return f"{op.output} {IN_PLACE_TEXT[name]} {render_arg(op.args[1])}"
    return None


def _render_call(op: spec.Op) -> str:
    """Return an op's right-hand side: a call, operator, index or attribute."""
    if op.output is None:  # an operator or attribute alone on a line would be no call
        return _render_plain_call(op)
    args = op.args
    if op.target == "getattr" and len(args) == 2 and isinstance(args[0], spec.Ref):
        return f"{args[0].name}.{args[1]}"
    if op.target == "operator.getitem" and len(args) == 2 and isinstance(args[0], spec.Ref):
        return f"{args[0].name}[{_render_index(args[1])}]"
    if op.target.startswith("operator.") and not op.kwargs:
        name = op.target.removeprefix("operator.")
        if name in INFIX_TEXT and len(args) == 2:
            return f"{_operand(args[0])} {INFIX_TEXT[name]} {render_arg(args[1])}"
        if name in PREFIX_TEXT and len(args) == 1:
            return f"{PREFIX_TEXT[name]}{render_arg(args[0])}"
    return _render_plain_call(op)


def _render_plain_call(op: spec.Op) -> str:
    callee, args = op.target, op.args
    if op.target.startswith("Tensor."):
        if not args or not isinstance(args[0], spec.Ref):
            raise GraphError(f"{op.target}: a method needs a value as its first argument")
        callee = f"{args[0].name}.{op.target.removeprefix('Tensor.')}"
        args = args[1:]
    texts = [render_arg(arg) for arg in args]
    texts += [f"{name}={render_arg(arg)}" for name, arg in op.kwargs]
    return f"{callee}({', '.join(texts)})"


def _operand(arg: spec.Arg) -> str:
    """Return a left operand; brackets keep `(-1) ** x` from becoming `-(1 ** x)`."""
    text = render_arg(arg)
    return f"({text})" if text.startswith("-") else text


def _render_index(arg: spec.Arg) -> str:
    """Return the text between the brackets of an index."""
    if isinstance(arg, spec.Sequence) and arg.kind == "tuple" and len(arg.items) > 1:
        return ", ".join(render_arg(inner) for inner in arg.items)
    return render_arg(arg)


def render_arg(arg: spec.Arg) -> str:
    """Return an argument as text."""
    if isinstance(arg, spec.Ref):
        return arg.name
    if isinstance(arg, spec.Sequence):
        return _render_sequence(arg)
    if isinstance(arg, spec.Slice):
        return f"slice({render_arg(arg.start)}, {render_arg(arg.stop)}, {render_arg(arg.step)})"
    if isinstance(arg, spec.TorchName):
        return "torch." + arg.name
    if isinstance(arg, spec.Device):
        index = "" if arg.index is None else f", index={arg.index}"
        return f"device(type={arg.kind!r}{index})"
    if arg is ...:
        return "Ellipsis"
    if isinstance(arg, float) and math.isnan(arg):
        return "float('nan')"
    return repr(arg)


def _render_sequence(sequence: spec.Sequence) -> str:
    text = ", ".join(render_arg(arg) for arg in sequence.items)
    if sequence.kind == "list":
        return f"[{text}]"
    if sequence.kind == "size":
        return f"torch.Size([{text}])"
    return f"({text},)" if len(sequence.items) == 1 else f"({text})"
