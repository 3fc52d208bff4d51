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

from passnet.agent.authors import triton_source
from passnet.agent.authors.inductor_code import KernelForm, contiguous
from passnet.agent.authors.language import FUNCTIONS_IMPORT, LANGUAGES, Language
from passnet.agent.authors.lowered_ranges import Piece
from passnet.agent.authors.parameter_order import Order
from passnet.agent.files import MAX_FILE_CHARACTERS, Files
from passnet.errors import AuthorError
from passnet.graph.render import render_statement
from passnet.graph.spec import Graph, refs
from passnet.passes.folder import LIST_FILE

HEAD = '''\
"""{num_ops} ops in kernels that Inductor generated, for {num_forms} forms of their arguments."""

{imports}


{prelude}def pattern({params}):
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
    """A piece, the source that computes it, and which functions of ours a source in Triton uses."""

    piece: Piece
    source: str
    functions: frozenset[str] = frozenset()


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
    language = LANGUAGES[pieces[0].piece.code.device]
    used = frozenset(name for item in pieces for name in item.functions)
    head = language.head.format(functions=FUNCTIONS_IMPORT if used else "")
    modules, places = _source_modules([item.source for item in pieces], language, head)
    if used:
        modules[f"{triton_source.FUNCTIONS}.py"] = triton_source.functions_text(used)
    files: Files = {LIST_FILE: json.dumps([f"Fused{number}" for number in range(len(groups))])}
    for number, (pattern, items) in enumerate(groups):
        files[f"Fused{number}.py"] = _pass_text(pattern, items, places)
    return files | modules


def _num_ops(item: Written) -> int:
    return len(item.piece.cut.program.ops)


def _source_modules(
    sources: Sequence[str], language: Language, head: str
) -> tuple[Files, dict[str, str]]:
    """Modules that hold sources, each below a head, and the dotted name of each source."""
    texts: list[list[str]] = []
    places: dict[str, str] = {}
    room = 0
    for source in dict.fromkeys(sources):
        number = len(places)
        numbered = source.replace(triton_source.NUMBER, f"_{number}")
        text = language.source.format(number=number, text=numbered)
        if '"""' in source or len(text) > MAX_FILE_CHARACTERS // 2:
            raise AuthorError(f"a generated source of {len(source)} characters fits no file")
        if len(text) > room:
            texts.append([head])
            room = MAX_FILE_CHARACTERS // 2
        texts[-1].append(text)
        room -= len(text)
        module = f"{language.modules}_{len(texts) - 1}"
        places[source] = f"{module}.{language.place.format(number=number)}"
    files = {
        f"{language.modules}_{number}.py": "\n".join(text) for number, text in enumerate(texts)
    }
    return files, places


def _pass_text(pattern: str, items: Sequence[Written], places: dict[str, str]) -> str:
    params = [param.name for param in items[0].piece.cut.program.params]
    by_key: dict[str, tuple[Written, Order]] = {}
    for item in items:
        for order in item.piece.orders:
            by_key.setdefault(_key(item.piece, order), (item, order))
    language = LANGUAGES[items[0].piece.code.device]
    modules = sorted({places[item.source].split(".")[0] for item in items})
    imports = "\n".join(f"from pass_dir import {name}" for name in modules)
    head = HEAD.format(
        num_ops=_num_ops(items[0]),
        num_forms=len(by_key),
        imports=language.imports.format(modules=imports),
        prelude=language.prelude,
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
    language = LANGUAGES[code.device]
    names = list(code.inputs)
    given = [names[place] for place in order.arguments]
    lines = [f"def form_{number}({', '.join(given)}):"]
    for name, form in code.inputs.items():
        lines += _laid_out(name, form, language)
    outputs = [f"out_{place}" for place in range(len(code.outputs))]
    for name, (_, form) in zip(outputs, code.outputs, strict=True):
        lines.append(f"    {name} = {_made(form, names[0], language)}")
    memory = [language.memory.format(name=name) for name in (*names, *outputs)]
    call = language.call.format(place=source, count=len(memory), memory=", ".join(memory))
    lines.append(f"    {call}")
    lines.append(f"    return {', '.join(outputs[place] for place in order.results)}")
    return "\n".join(lines) + "\n\n\n"


def _laid_out(name: str, form: KernelForm, language: Language) -> list[str]:
    """Lines that give an argument the strides that its kernel reads."""
    if form.stride == contiguous(form.shape):
        return [f"    {name} = {name}.contiguous()"]
    return [
        f"    if {name}.stride() != {form.stride}:",
        f"        laid_out = {_made(form, name, language)}",
        f"        {name} = laid_out.copy_({name})",
    ]


def _made(form: KernelForm, beside: str, language: Language) -> str:
    """The text that makes a tensor of a form on the device of another."""
    made = language.made.format(dtype=form.dtype, device=beside)
    return f"torch.empty_strided({form.shape}, {form.stride}, {made})"
