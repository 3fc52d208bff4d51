"""The pass folder of some pieces: a pass for each pattern, with a kernel for each form of it.

Graphs of a task differ in shapes and dtypes, and patterns do not see these. So pieces of the same
ops share a pass, whose replacement looks up the kernel by the shapes and dtypes of its arguments,
and raises for those that none was made for. A kernel is compiled when it is called for the first
time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from passnet.agent.authors.cpp_source import ENTRY
from passnet.agent.authors.inductor_code import Form, contiguous
from passnet.agent.authors.pieces import Piece
from passnet.agent.authors.symmetry import Order
from passnet.agent.files import MAX_FILE_CHARACTERS, Files
from passnet.errors import AuthorError
from passnet.graph.render import render_statement
from passnet.graph.spec import Graph, refs
from passnet.passes.folder import LIST_FILE

HEAD = '''\
"""{num_ops} ops in kernels that Inductor generated, for {num_forms} forms of their arguments."""

import functools

import torch

{imports}
from passnet.passes import cpp


@functools.cache
def kernel(source, num_pointers):
    return cpp.kernel(source, "{entry}", "p" * num_pointers)


def pattern({params}):
{pattern}


def replacement_args({params}):
    return {params},


'''

TAIL = """\
FORMS = {{
{table}
}}


def replacement({params}):
    form = FORMS.get(({key}))
    if form is None:
        given = [(tuple(item.shape), item.dtype) for item in ({params},)]
        raise RuntimeError(f"no kernel was generated for arguments of the form {{given}}")
    return form({params})


def replacement_func():
    return replacement
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A piece and the C++ source that computes it."""

    piece: Piece
    source: str


def pattern_text(cut: Graph) -> str:
    """The body of the pattern that matches a piece: its ops, and what it returns."""
    lines = [render_statement(item) for item in cut.program.body]
    returned = ", ".join(name for arg in cut.program.outputs for name in refs(arg))
    text = "\n".join([*lines, f"return {returned}"])
    imports = [f"import {name}" for name in ("operator",) if f"{name}." in text]
    imports += [f"from torch import {name}" for name in ("device", "inf") if _uses(cut, text, name)]
    return "\n".join([*imports, text])


def _uses(cut: Graph, text: str, name: str) -> bool:
    return f"{name}(" in text if name == "device" else "inf" in text


def pass_folder(pieces: Sequence[Written]) -> Files:
    """The pass folder that replaces some pieces, larger ones first.

    Raises:
        AuthorError: a source is too long for a file.
    """
    by_pattern: dict[str, list[Written]] = {}
    for item in pieces:
        by_pattern.setdefault(pattern_text(item.piece.cut), []).append(item)
    groups = sorted(by_pattern.items(), key=lambda group: -_num_ops(group[1][0]))
    modules, places = _source_modules([item.source for item in pieces])
    files: Files = {LIST_FILE: json.dumps([f"Fused{number}" for number in range(len(groups))])}
    for number, (pattern, items) in enumerate(groups):
        files[f"Fused{number}.py"] = _pass_text(pattern, items, places)
    return files | modules


def _num_ops(item: Written) -> int:
    return len(item.piece.cut.program.ops)


def _source_modules(sources: Sequence[str]) -> tuple[Files, dict[str, str]]:
    """Modules that hold sources, and the dotted name of each source."""
    texts: list[list[str]] = []
    places: dict[str, str] = {}
    room = 0
    for source in dict.fromkeys(sources):
        number = len(places)
        text = f'SOURCE_{number} = r"""\n{source}"""\n'
        if '"""' in source or len(text) > MAX_FILE_CHARACTERS // 2:
            raise AuthorError(f"a generated source of {len(source)} characters fits no file")
        if len(text) > room:
            texts.append(['"""C++ that Inductor generated, in the vocabulary of passnet."""\n'])
            room = MAX_FILE_CHARACTERS // 2
        texts[-1].append(text)
        room -= len(text)
        places[source] = f"sources_{len(texts) - 1}.SOURCE_{number}"
    return {f"sources_{number}.py": "\n".join(text) for number, text in enumerate(texts)}, places


def _pass_text(pattern: str, items: Sequence[Written], places: dict[str, str]) -> str:
    params = [param.name for param in items[0].piece.cut.program.params]
    by_key: dict[str, tuple[Written, Order]] = {}
    for item in items:
        for order in item.piece.orders:
            by_key.setdefault(_key(item.piece, order), (item, order))
    modules = sorted({places[item.source].split(".")[0] for item in items})
    head = HEAD.format(
        num_ops=_num_ops(items[0]),
        num_forms=len(by_key),
        imports="\n".join(f"from pass_dir import {name}" for name in modules),
        entry=ENTRY,
        params=", ".join(params),
        pattern="\n".join(f"    {line}" for line in pattern.splitlines()),
    )
    forms = [
        _form_text(number, item, order, places[item.source])
        for number, (item, order) in enumerate(by_key.values())
    ]
    table = "\n".join(f"    ({key}): form_{number}," for number, key in enumerate(by_key))
    looked_up = ", ".join(f"{name}.shape, {name}.dtype" for name in params)
    tail = TAIL.format(table=table, params=", ".join(params), key=looked_up)
    return head + "".join(forms) + tail


def _key(piece: Piece, order: Order) -> str:
    forms = list(piece.code.inputs.values())
    return ", ".join(
        f"{forms[place].shape}, torch.{forms[place].dtype}" for place in order.arguments
    )


def _form_text(number: int, item: Written, order: Order, source: str) -> str:
    """The function that calls the kernel for one form of the arguments, given in some order."""
    code = item.piece.code
    names = list(code.inputs)
    given = [names[place] for place in order.arguments]
    lines = [f"def form_{number}({', '.join(given)}):"]
    for name, form in code.inputs.items():
        lines += _laid_out(name, form)
    outputs = [f"out_{place}" for place in range(len(code.outputs))]
    for name, (_, form) in zip(outputs, code.outputs, strict=True):
        lines.append(
            f"    {name} = torch.empty_strided({form.shape}, {form.stride}, "
            f"dtype=torch.{form.dtype})"
        )
    pointers = [f"{name}.data_ptr()" for name in (*names, *outputs)]
    lines.append(f"    kernel({source}, {len(pointers)})({', '.join(pointers)})")
    lines.append(f"    return {', '.join(outputs[place] for place in order.results)}")
    return "\n".join(lines) + "\n\n\n"


def _laid_out(name: str, form: Form) -> list[str]:
    """Lines that give an argument the strides that its kernel reads."""
    if form.stride == contiguous(form.shape):
        return [f"    {name} = {name}.contiguous()"]
    return [
        f"    if {name}.stride() != {form.stride}:",
        f"        laid_out = torch.empty_strided({form.shape}, {form.stride}, "
        f"dtype=torch.{form.dtype})",
        f"        {name} = laid_out.copy_({name})",
    ]
