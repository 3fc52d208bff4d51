"""Generated code as one Python text of a pass: its Triton kernels, and their launches.

Names of torch's compiler become those of `triton.language` or of `inductor_functions.py`, which the
folder gets copies from.
"""

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from passnet.errors import AuthorError
from passnet.inductor.generated_code import GeneratedCode, KernelCall
from passnet.passes.codegen.triton_kernel import BlockSizes, TritonKernel, launch_of, read_kernel
from passnet.passes.compilation import INCLUDE

ENTRY = "launch"
"""Name of the function that launches all kernels: it gets the inputs, then the outputs."""

NUMBER = "_NUMBER"
"""End of every name that a text defines, since a module may hold several texts."""

FUNCTIONS = "functions"
MATH = frozenset(["abs", "ceil", "cos", "erf", "exp2", "floor", "fma", "rsqrt", "sin"])
MATH |= frozenset(["sqrt", "sqrt_rn", "div_rn"])
"""Functions of libdevice that `triton.language` has by the same name."""


def triton_source(
    code: GeneratedCode, blocks: BlockSizes | None = None
) -> tuple[str, frozenset[str]]:
    """Return the Triton of generated code with the entry `ENTRY`, and our functions in it.

    An unknown form of a kernel or a function that we have not is an AuthorError.
    """
    kernels = {kernel.name: read_kernel(kernel) for kernel in code.kernels}
    names: dict[tuple[str, tuple[int, ...]], str] = {}
    definitions: list[str] = []
    functions: set[str] = set()
    lines = _head_lines(code)
    for call in code.calls:
        kernel = kernels[call.kernel]
        offsets = tuple(slot.offset for slot in call.arguments)
        if (call.kernel, offsets) not in names:
            name = f"{call.kernel.removeprefix('triton_')}_{len(names)}{NUMBER}"
            names[call.kernel, offsets] = name
            definitions += _definitions(kernel, name, offsets, functions)
        name = names[call.kernel, offsets]
        lines.append(_launch_line(code, kernel, call, name, blocks or BlockSizes()))
    return "\n\n\n".join([*definitions, "\n".join(lines)]) + "\n", frozenset(functions)


def functions_text(names: Iterable[str]) -> str:
    """Return a module with some of our functions and those they use."""
    functions = _our_functions()
    included: set[str] = set()
    new = set(names)
    while new:
        included |= new
        nodes = [node for name in new for node in ast.walk(functions[name])]
        new = {
            node.id for node in nodes if isinstance(node, ast.Name)
        } & functions.keys() - included
    head = '"""Functions of the kernels that `triton.language` has not."""\n\n'
    head += "import triton\nimport triton.language as tl"
    texts = [head, *(ast.unparse(functions[name]) for name in functions if name in included)]
    return "\n\n\n".join(texts) + "\n"


@cache
def _our_functions() -> dict[str, ast.FunctionDef]:
    """Return our functions by name, in the order of their file."""
    text = (INCLUDE / "inductor_functions.py").read_text(encoding="utf-8")
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def _head_lines(code: GeneratedCode) -> list[str]:
    """Return the launching function's first lines, which allocate scratch memory."""
    results = [name for name, _ in code.outputs]
    device = f"{next(iter(code.inputs))}.device"
    buffers = [
        f"    {name} = torch.empty_strided(({count},), (1,), dtype=torch.{dtype}, device={device})"
        for name, (dtype, count) in code.buffers.items()
        if name not in results
    ]
    return [f"def {ENTRY}{NUMBER}({', '.join([*code.inputs, *results])}):", *buffers]


def _launch_line(
    code: GeneratedCode, kernel: TritonKernel, call: KernelCall, name: str, blocks: BlockSizes
) -> str:
    for pointer, slot in zip(kernel.pointers, call.arguments, strict=True):
        if slot.memory in code.inputs and not pointer.startswith("in_ptr"):
            raise AuthorError(f"{call.kernel} writes into argument {slot.memory}")
    launch = launch_of(kernel, blocks)
    arguments = [slot.memory for slot in call.arguments]
    arguments += [f"{key}={value}" for key, value in launch.keywords.items()]
    grid = ", ".join(map(str, launch.grid))
    return f"    {name}[({grid},)]({', '.join(arguments)})"


def _definitions(
    kernel: TritonKernel, name: str, offsets: tuple[int, ...], functions: set[str]
) -> list[str]:
    """Return a renamed kernel and its helpers, without Inductor's names.

    `offsets` are where arguments begin in their memory, in elements; `functions` collects the names
    of our functions.
    """
    renamed = {helper.name: f"{helper.name.lstrip('_')}_of_{name}" for helper in kernel.helpers}
    translator = _NameTranslator(kernel, renamed, functions)
    definitions = []
    for original in (*kernel.helpers, kernel.function):
        function = copy.deepcopy(original)
        function.name = renamed.get(original.name, name)
        function.decorator_list = [ast.parse("triton.jit", mode="eval").body]
        if original is kernel.function:
            params = {*kernel.pointers, *kernel.launch_blocks}
            function.args.args = [arg for arg in function.args.args if arg.arg in params]
            function.body[:0] = [
                ast.parse(f"{pointer} = {pointer} + {offset}").body[0]
                for pointer, offset in zip(kernel.pointers, offsets, strict=True)
                if offset
            ]
        definitions.append(ast.unparse(ast.fix_missing_locations(translator.visit(function))))
    return definitions


@dataclass
class _NameTranslator(ast.NodeTransformer):
    """A transformer that replaces names of Inductor's modules and of renamed functions."""

    kernel: TritonKernel
    renamed: Mapping[str, str]
    functions: set[str]

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802, D102, ast's name
        return ast.Name(self.renamed.get(node.id, node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802, D102, ast's name
        match node.value:
            case ast.Name(id="triton_helpers" | "libdevice" as module):
                if module == "libdevice" and node.attr in MATH:
                    return ast.Attribute(ast.Name("tl", ast.Load()), node.attr, node.ctx)
                is_double = module == "libdevice" and self.kernel.is_double
                if is_double or node.attr not in _our_functions():
                    dtype = " of float64" if is_double else ""
                    raise AuthorError(
                        f"{self.kernel.name} calls {module}.{node.attr}{dtype}, for which we have "
                        "no function"
                    )
                self.functions.add(node.attr)
                return ast.Attribute(ast.Name(FUNCTIONS, ast.Load()), node.attr, node.ctx)
            case ast.Name(id="tl_math"):
                return ast.Attribute(ast.Name("tl", ast.Load()), node.attr, node.ctx)
        return ast.Attribute(self.visit(node.value), node.attr, node.ctx)
