"""A Triton kernel that Inductor generated, read: its function, its sizes, what a launch gives."""

import ast
from dataclasses import dataclass
from typing import Any

from passnet.errors import AuthorError
from passnet.inductor.generated_code import GeneratedKernel

HEURISTICS = ("pointwise", "reduction", "persistent_reduction", "foreach")
"""Kinds of kernels that are written: the decorators of Inductor that choose their blocks."""

BLOCKS = ("XBLOCK", "YBLOCK", "ZBLOCK", "R0_BLOCK")
"""Blocks that a launch may give."""


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """A kernel as data.

    `function` is its definition, and `helpers` are those of functions that it is given to combine
    values with. `pointers` are the parameters that are memory. `kind` is one of `HEURISTICS`, and
    `grid` Inductor's name for the order of its programs. `numels` has the size of each axis (x, y,
    z, r0_). `fixed` has the blocks that the text fixes, and `launch_blocks` names those that a
    launch gives. A kernel of kind foreach computes one tensor after the other, of `parts` values.
    `is_outer`: values that are reduced together do not lie together. `fuses_products`: a product
    and a sum may be rounded once. `is_double`: something in it is in float64.
    """

    name: str
    function: ast.FunctionDef
    helpers: tuple[ast.FunctionDef, ...]
    pointers: tuple[str, ...]
    kind: str
    grid: str
    numels: dict[str, int]
    fixed: dict[str, int]
    launch_blocks: tuple[str, ...]
    parts: tuple[int, ...]
    is_outer: bool
    fuses_products: bool
    is_double: bool


def read_kernel(kernel: GeneratedKernel) -> TritonKernel:
    """What the text of a kernel says.

    Raises:
        AuthorError: it has another form than known.
    """
    functions = [node for node in ast.parse(kernel.text).body if isinstance(node, ast.FunctionDef)]
    own = [node for node in functions if node.name == kernel.name]
    calls = [node for func in own for node in func.decorator_list if isinstance(node, ast.Call)]
    if len(own) != 1 or len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute):
        raise _unknown_form(kernel.name, "its definition")
    kind = calls[0].func.attr
    if kind not in HEURISTICS:
        raise AuthorError(f"{kernel.name}: kernels of the kind {kind} are not written")
    options = {keyword.arg: keyword.value for keyword in calls[0].keywords}
    triton_meta, inductor_meta = options["triton_meta"], options["inductor_meta"]
    types: dict[str, str] = _constant(triton_meta, "signature", kernel.name)
    names = [arg.arg for arg in own[0].args.args]
    numels, fixed = _fixed_sizes(own[0])
    pointers = tuple(name for name in names if types.get(name, "").startswith("*"))
    launch_blocks = tuple(name for name in names if name in BLOCKS)
    sizes = {f"{axis}numel" for axis in numels}
    if unknown := {*names} - {*pointers, *launch_blocks, *sizes}:
        raise _unknown_form(kernel.name, f"its parameter {min(unknown)}")
    meta: dict[str, Any] = {}
    if kind == "foreach":
        meta = _constant(inductor_meta, "combo_grid_meta", kernel.name)
        if any(meta[f"no_x_dim_{number}"] for number in range(meta["num_kernels"])):
            raise _unknown_form(kernel.name, "a part of it without blocks")
    hint = options.get("reduction_hint")
    return TritonKernel(
        name=kernel.name,
        function=own[0],
        helpers=tuple(node for node in functions if node is not own[0]),
        pointers=pointers,
        kind=kind,
        grid=_constant(inductor_meta, "grid_type", kernel.name),
        numels=numels,
        fixed=fixed,
        launch_blocks=launch_blocks,
        parts=tuple(int(meta[f"xnumel_{part}"]) for part in range(meta.get("num_kernels", 0))),
        is_outer=isinstance(hint, ast.Attribute) and hint.attr.startswith("OUTER"),
        fuses_products=_constant(triton_meta, "enable_fp_fusion", kernel.name),
        is_double="*fp64" in types.values() or "tl.float64" in kernel.text,
    )


def _constant(record: ast.expr, key: str, name: str) -> Any:
    """The constant that a dictionary display has under a key."""
    if isinstance(record, ast.Dict):
        for node, value in zip(record.keys, record.values, strict=True):
            if isinstance(node, ast.Constant) and node.value == key:
                return ast.literal_eval(value)
    raise _unknown_form(name, key)


def _fixed_sizes(function: ast.FunctionDef) -> tuple[dict[str, int], dict[str, int]]:
    """The sizes of the axes, and the blocks, that the first level of a body fixes."""
    numels: dict[str, int] = {}
    fixed: dict[str, int] = {}
    for node in function.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(value))):
                if name.endswith("numel"):
                    numels[name.removesuffix("numel")] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=int(value))):
                if name in BLOCKS:
                    fixed[name] = value
    return numels, fixed


def _unknown_form(name: str, part: str) -> AuthorError:
    return AuthorError(f"{name}: the generated Triton has another form than known ({part})")
