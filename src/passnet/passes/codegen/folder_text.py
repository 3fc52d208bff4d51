"""The pass folder of lowered ranges: a pass for each pattern, a kernel for each form of it.

A replacement looks its kernel up by the shapes and dtypes of its arguments, and compiles it at its
first call.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from passnet.errors import AuthorError
from passnet.graph.values.effects import may_alias
from passnet.inductor.generated_code import TensorLayout, contiguous
from passnet.passes.codegen import triton_source
from passnet.passes.codegen.kernel_text import LANGUAGES, Language
from passnet.passes.codegen.lowered_ranges import LoweredRange, ParameterOrder
from passnet.passes.codegen.pass_text import form_key, pass_text, pattern_text
from passnet.passes.files import MAX_FILE_CHARACTERS, Files
from passnet.passes.folder import LIST_FILE


@dataclass(frozen=True, slots=True)
class RangeSource:
    """A lowered range, its kernel source, and the names of our functions in it."""

    lowered: LoweredRange
    text: str
    functions: frozenset[str] = frozenset()

    @property
    def num_ops(self) -> int:
        """Return the number of replaced ops."""
        return len(self.lowered.cut.program.ops)


def pass_folder(sources: Sequence[RangeSource], is_strided: bool = False) -> Files:
    """Return the pass folder that replaces some ranges, larger ones first.

    With `is_strided` a pass is only for the strides of its kernels; without, other arguments are
    copied, except for views alone. A source that is too long for a file is an AuthorError.
    """
    by_pattern: dict[str, list[RangeSource]] = {}
    for source in sources:
        by_pattern.setdefault(pattern_text(source.lowered.cut), []).append(source)
    groups = sorted(by_pattern.items(), key=lambda group: -group[1][0].num_ops)
    language = LANGUAGES[sources[0].lowered.code.device]
    functions = frozenset(name for source in sources for name in source.functions)
    imported = f"from pass_dir import {triton_source.FUNCTIONS}\n" if functions else ""
    head = language.head.format(functions=imported)
    modules, names = _source_modules([source.text for source in sources], language, head)
    if functions:
        modules[f"{triton_source.FUNCTIONS}.py"] = triton_source.functions_text(functions)
    files: Files = {LIST_FILE: json.dumps([f"Fused{number}" for number in range(len(groups))])}
    for number, (pattern, group) in enumerate(groups):
        files[f"Fused{number}.py"] = _pass_text(pattern, group, language, names, is_strided)
    return files | modules


def _source_modules(
    sources: Sequence[str], language: Language, head: str
) -> tuple[Files, dict[str, str]]:
    """Return modules with sources, each below a head, and the dotted name of each source."""
    files: Files = {}
    names: dict[str, str] = {}
    module, room = "", 0
    for number, source in enumerate(dict.fromkeys(sources)):
        numbered = source.replace(triton_source.NUMBER, f"_{number}")
        text = language.source.format(number=number, text=numbered)
        if '"""' in source or len(text) > MAX_FILE_CHARACTERS // 2:
            raise AuthorError(f"a generated source of {len(source)} characters fits no file")
        if len(text) > room:
            module, room = f"{language.modules}_{len(files)}", MAX_FILE_CHARACTERS // 2
            files[f"{module}.py"] = head
        files[f"{module}.py"] += f"\n{text}"
        room -= len(text)
        names[source] = f"{module}.{language.source_name.format(number=number)}"
    return files, names


def _pass_text(
    pattern: str,
    sources: Sequence[RangeSource],
    language: Language,
    names: dict[str, str],
    is_strided: bool,
) -> str:
    """Return the pass for a pattern; `names` maps a source's text to its dotted name."""
    by_key: dict[str, tuple[RangeSource, ParameterOrder]] = {}
    for source in sources:
        for order in source.lowered.orders:
            by_key.setdefault(form_key(*_layouts(source.lowered, order)), (source, order))
    params = [param.name for param in sources[0].lowered.cut.program.params]
    modules = sorted({names[source.text].split(".")[0] for source in sources})
    imports = "\n".join(f"from pass_dir import {name}" for name in modules)
    forms = [
        _form_text(number, source.lowered, order, names[source.text])
        for number, (source, order) in enumerate(by_key.values())
    ]
    strides = {
        key: tuple(layout.stride for layout in _layouts(source.lowered, order))
        for key, (source, order) in by_key.items()
    }
    ops = sources[0].lowered.cut.program.ops
    form = ", ".join(f"{name}.shape, {name}.dtype" for name in params)
    return pass_text(
        f"{sources[0].num_ops} ops in kernels that Inductor generated",
        pattern,
        params,
        {key: f"form_{number}" for number, key in enumerate(by_key)},
        [f"return FORMS[({form})]({', '.join(params)})"],
        strides if is_strided or all(may_alias(op.target) for op in ops) else None,
        language.imports.format(modules=imports),
        language.prelude + "".join(forms),
    )


def _layouts(lowered: LoweredRange, order: ParameterOrder) -> list[TensorLayout]:
    layouts = list(lowered.code.inputs.values())
    return [layouts[number] for number in order.arguments]


def _form_text(number: int, lowered: LoweredRange, order: ParameterOrder, source: str) -> str:
    """Return the function that calls the kernel for one form of the arguments, in some order."""
    code = lowered.code
    language = LANGUAGES[code.device]
    names = list(code.inputs)
    params = [names[argument] for argument in order.arguments]
    lines = [f"def form_{number}({', '.join(params)}):"]
    for name, layout in code.inputs.items():
        lines += _relayout_lines(name, layout, language)
    outputs = [f"out_{result}" for result in range(len(code.outputs))]
    for name, (_, layout) in zip(outputs, code.outputs, strict=True):
        lines.append(f"    {name} = {_allocation(layout, names[0], language)}")
    call = language.call.format(source=source, memory=", ".join([*names, *outputs]))
    lines.append(f"    {call}")
    lines.append(f"    return {', '.join(outputs[result] for result in order.results)}")
    return "\n".join(lines) + "\n\n\n"


def _relayout_lines(name: str, layout: TensorLayout, language: Language) -> list[str]:
    """Return the lines that give an argument the strides its kernel reads."""
    if layout.stride == contiguous(layout.shape):
        return [f"    {name} = {name}.contiguous()"]
    return [
        f"    if {name}.stride() != {layout.stride}:",
        f"        laid_out = {_allocation(layout, name, language)}",
        f"        {name} = laid_out.copy_({name})",
    ]


def _allocation(layout: TensorLayout, beside: str, language: Language) -> str:
    """Return the text that allocates a tensor of a layout on another's device."""
    return language.allocation.format(
        shape=layout.shape, stride=layout.stride, dtype=layout.dtype, device=beside
    )
