"""The text of a pass for one pattern, in the forms of its arguments that it was made for."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import indent

from passnet.graph.spec import Graph, TensorSpec, refs
from passnet.graph.text.render import render_statement
from passnet.inductor.generated_code import TensorLayout

INDENT = "    "

PASS = '''\
"""{title}, for {num_forms} forms of their arguments."""

{imports}


def pattern({params}):
{pattern}


def replacement_args({params}):
    return {params},


{definitions}{tables}


def guard({params}):  # for other arguments it was neither made nor judged
    tensors = [given for given in ({params},) if isinstance(given, torch.Tensor)]
    given = [(tuple(map(int, tensor.shape)), tensor.dtype) for tensor in tensors]
    key = tuple(part for form in given for part in form)
    return {condition}


def replacement({params}):
{body}


def replacement_func():
    return replacement
'''

IN_STRIDES = """\
key in FORMS and all(
        size == 1 or stride == expected
        for tensor, strides in zip(({params},), STRIDES[key])
        for size, stride, expected in zip(tensor.shape, tensor.stride(), strides)
    )"""

PATTERN_IMPORTS = {
    "import operator": "operator.",
    "from torch import device": "device(",
    "from torch import inf": "inf",
}


def form_key(*tensors: TensorSpec | TensorLayout) -> str:
    """Return shapes and dtypes of arguments as a key of a pass's tables."""
    return ", ".join(f"{tensor.shape}, torch.{tensor.dtype}" for tensor in tensors)


def pattern_text(cut: Graph) -> str:
    """Return the body of the pattern that matches a range: its ops and its return."""
    lines = [render_statement(statement) for statement in cut.program.body]
    returned = ", ".join(name for arg in cut.program.outputs for name in refs(arg))
    text = "\n".join([*lines, f"return {returned}"])
    return "\n".join([*pattern_imports(text), text])


def pattern_imports(text: str) -> list[str]:
    """Return the imports that statements need besides torch."""
    return [line for line, use in PATTERN_IMPORTS.items() if use in text]


def pass_text(
    title: str,
    pattern: str,
    params: Sequence[str],
    forms: Mapping[str, str | None],
    body: Iterable[str],
    strides: Mapping[str, Sequence[tuple[int, ...]]] | None = None,
    imports: str = "import torch",
    definitions: str = "",
) -> str:
    """Return a pass that is applied to arguments of some forms, with `strides` in these alone.

    `forms` has a name of `definitions` by `form_key`, None if `body`, the lines of the replacement,
    needs none.
    """
    names = ", ".join(params)
    tables = [table_text("FORMS", forms), *([table_text("STRIDES", strides)] if strides else [])]
    return PASS.format(
        title=title,
        num_forms=len(forms),
        imports=imports,
        params=names,
        pattern=indent(pattern, INDENT),
        definitions=definitions,
        tables="\n".join(tables),
        condition=IN_STRIDES.format(params=names) if strides else "key in FORMS",
        body=indent("\n".join(body), INDENT),
    )


def table_text(name: str, values: Mapping[str, object]) -> str:
    """Return the definition of a table by the forms of arguments."""
    lines = [f"    ({key}): {value}," for key, value in values.items()]
    return "\n".join([f"{name} = {{", *lines, "}"])
