"""A Triton kernel that Inductor generated, read: its function, its sizes, what a launch gives."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from passnet.agent.authors.inductor_code import GeneratedKernel
from passnet.errors import AuthorError

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
    z, r0_). `fixed` has the blocks that the text fixes, and `given` names those that a launch
    gives. A kernel of kind foreach computes one tensor after the other, of `parts` values.
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
    given: tuple[str, ...]
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
    calls = [item for node in own for item in node.decorator_list if isinstance(item, ast.Call)]
    if len(own) != 1 or len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute):
        raise _unknown(kernel.name, "its definition")
    kind = calls[0].func.attr
    if kind not in HEURISTICS:
        raise AuthorError(f"{kernel.name}: kernels of the kind {kind} are not written")
    options = {item.arg: item.value for item in calls[0].keywords}
    triton_meta, inductor_meta = options["triton_meta"], options["inductor_meta"]
    types: dict[str, str] = ast.literal_eval(_item(triton_meta, "signature", kernel.name))
    names = [item.arg for item in own[0].args.args]
    numels, fixed = _constants(own[0])
    pointers = tuple(name for name in names if types.get(name, "").startswith("*"))
    given = tuple(name for name in names if name in BLOCKS)
    sizes = {f"{axis}numel" for axis in numels}
    if rest := set(names) - set(pointers) - set(given) - sizes:
        raise _unknown(kernel.name, f"its parameter {min(rest)}")
    meta: dict[str, Any] = {}
    if kind == "foreach":
        meta = ast.literal_eval(_item(inductor_meta, "combo_grid_meta", kernel.name))
        if any(meta[f"no_x_dim_{number}"] for number in range(meta["num_kernels"])):
            raise _unknown(kernel.name, "a part of it without blocks")
    hint = options.get("reduction_hint")
    return TritonKernel(
        kernel.name,
        own[0],
        tuple(node for node in functions if node is not own[0]),
        pointers,
        kind,
        ast.literal_eval(_item(inductor_meta, "grid_type", kernel.name)),
        numels,
        fixed,
        given,
        tuple(int(meta[f"xnumel_{number}"]) for number in range(meta.get("num_kernels", 0))),
        isinstance(hint, ast.Attribute) and hint.attr.startswith("OUTER"),
        ast.literal_eval(_item(triton_meta, "enable_fp_fusion", kernel.name)),
        "*fp64" in types.values() or "tl.float64" in kernel.text,
    )


def _item(record: ast.expr, key: str, name: str) -> ast.expr:
    """What a dictionary display has under a key."""
    if isinstance(record, ast.Dict):
        for known, value in zip(record.keys, record.values, strict=True):
            if isinstance(known, ast.Constant) and known.value == key:
                return value
    raise _unknown(name, key)


def _constants(function: ast.FunctionDef) -> tuple[dict[str, int], dict[str, int]]:
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


def _unknown(name: str, what: str) -> AuthorError:
    return AuthorError(f"{name}: the generated Triton has another form than known ({what})")
