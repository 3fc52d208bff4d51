"""A generated Triton kernel, read, and the launch that plain rules give it.

The rules were not measured; the author `search` varies the sizes that they start from.
"""

import ast
from dataclasses import dataclass
from math import prod
from typing import Any

from passnet.errors import AuthorError
from passnet.inductor.generated_code import GeneratedKernel

HEURISTICS = ("pointwise", "reduction", "persistent_reduction", "foreach")
"""Supported kinds of kernels: Inductor's decorators that choose their blocks."""

BLOCKS = ("XBLOCK", "YBLOCK", "ZBLOCK", "R0_BLOCK")


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """A kernel as data.

    `helpers` combine values for `function`; `pointers` are its parameters in memory. `kind` is one
    of `HEURISTICS`, `grid` Inductor's name for the order of programs. `numels` has the size of each
    axis (x, y, z, r0_), `fixed` the blocks in the text; `launch_blocks` are given at launch. A
    foreach kernel computes tensors of `parts` values one after the other. `is_outer`: reduced
    values do not lie together. `fuses_products`: a product and a sum may be rounded once.
    `is_double`: float64 occurs.
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
    """Read a kernel's text; raise AuthorError if it has an unknown form."""
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
    """Return the constant under a key of a dictionary display."""
    if isinstance(record, ast.Dict):
        for node, value in zip(record.keys, record.values, strict=True):
            if isinstance(node, ast.Constant) and node.value == key:
                return ast.literal_eval(value)
    raise _unknown_form(name, key)


def _fixed_sizes(function: ast.FunctionDef) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sizes of axes and blocks that the first level of a body fixes."""
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


MAX_BLOCKS = {"XBLOCK": 4096, "YBLOCK": 1024, "ZBLOCK": 1024}
"""The largest block along each axis of a grid. Generated code has no masks along an axis whose size
is a multiple of it (torch/_inductor/runtime/hints.py of torch 2.13)."""

MAX_PROGRAMS = 65_535
"""The most programs along the second and third axis of a grid (CUDA C++ Programming Guide)."""

ENOUGH_PROGRAMS = 256
"""Number of programs, about two a multiprocessor, for which blocks become smaller."""

LEAST_VALUES = 128
VALUES_PER_WARP = 256
MAX_WARPS = {"pointwise": 8, "foreach": 8, "reduction": 16, "persistent_reduction": 16}
OUTER_COLUMNS = 32
"""Sums that a program computes side by side if the values of one sum are not contiguous."""


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """The sizes that the rules start from.

    A pointwise program computes `values`, a reduction holds `row` values at a time, both powers of
    2. `num_warps` None is one each `VALUES_PER_WARP`, `num_stages` None is Triton's choice.
    """

    values: int = 1024
    row: int = 2048
    num_warps: int | None = None
    num_stages: int | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch: the number of programs along each axis, and the keywords of the call."""

    grid: tuple[int, ...]
    keywords: dict[str, int | bool]


def launch_of(kernel: TritonKernel, blocks: BlockSizes) -> Launch:
    """Return the launch of a kernel; raise AuthorError if its grid is unknown or too large."""
    sizes = {name: kernel.fixed.get(name, 1) for name in (*kernel.launch_blocks, *kernel.fixed)}
    if "r0_" in kernel.numels:
        _size_reduction(kernel, blocks, sizes)
    else:
        _size_pointwise(kernel, blocks, sizes)
    grid = _grid(kernel, sizes)
    if any(count > MAX_PROGRAMS for count in grid[1:]):
        raise AuthorError(f"{kernel.name}: a grid of {grid} programs is too large")
    keywords: dict[str, int | bool] = {name: sizes[name] for name in kernel.launch_blocks}
    num_warps = min(max(prod(sizes.values()) // VALUES_PER_WARP, 1), MAX_WARPS[kernel.kind])
    keywords["num_warps"] = blocks.num_warps or num_warps
    if blocks.num_stages is not None:
        keywords["num_stages"] = blocks.num_stages
    if not kernel.fuses_products:
        keywords["enable_fp_fusion"] = False
    return Launch(grid, keywords)


def _size_pointwise(kernel: TritonKernel, blocks: BlockSizes, sizes: dict[str, int]) -> None:
    """Make blocks as near to a cube as the axes allow, the first axis the longest."""
    axes = [name for name in MAX_BLOCKS if name in kernel.launch_blocks]
    most = {
        name: min(_next_power(kernel.numels.get(name[0].lower(), 1)), MAX_BLOCKS[name])
        for name in axes
    }
    while prod(sizes.values()) < blocks.values:
        growing = [name for name in axes if sizes[name] < most[name]]
        if not growing:
            break
        sizes[min(growing, key=lambda name: sizes[name])] *= 2
    while axes and prod(sizes.values()) > LEAST_VALUES:
        if prod(_grid(kernel, sizes)) >= ENOUGH_PROGRAMS:
            break
        sizes[max(reversed(axes), key=lambda name: sizes[name])] //= 2


def _size_reduction(kernel: TritonKernel, blocks: BlockSizes, sizes: dict[str, int]) -> None:
    """Set the number of rows side by side, and the part of each that is held at a time."""
    least = OUTER_COLUMNS if kernel.is_outer else 1
    if "R0_BLOCK" in kernel.launch_blocks:
        sizes["R0_BLOCK"] = min(_next_power(kernel.numels["r0_"]), max(blocks.row // least, 16))
    if "XBLOCK" in kernel.launch_blocks:
        columns = max(blocks.row // sizes.get("R0_BLOCK", 1), least)
        sizes["XBLOCK"] = min(columns, _next_power(kernel.numels["x"]), MAX_BLOCKS["XBLOCK"])
        while sizes["XBLOCK"] > least and prod(_grid(kernel, sizes)) < ENOUGH_PROGRAMS:
            sizes["XBLOCK"] //= 2


def _grid(kernel: TritonKernel, sizes: dict[str, int]) -> tuple[int, ...]:
    def along(axis: str) -> int:
        return _ceil_div(kernel.numels.get(axis, 1), sizes.get(f"{axis.upper()}BLOCK", 1))

    match kernel.grid:
        case "Grid1D":
            return (along("x"),)
        case "Grid2D":
            return (along("x"), along("y"))
        case "Grid3D":
            return (along("x"), along("y"), along("z"))
        case "Grid2DWithYZOverflow":
            layers = _ceil_div(along("y"), MAX_PROGRAMS)
            return (along("x"), _ceil_div(along("y"), layers), layers)
        case "SequentialComboKernelGrid":
            return (sum(_ceil_div(part, sizes["XBLOCK"]) for part in kernel.parts),)
    raise AuthorError(f"{kernel.name}: a grid of the kind {kernel.grid} is not written")


def _ceil_div(count: int, size: int) -> int:
    return -(-count // size)


def _next_power(count: int) -> int:
    """Return the least power of 2 that is at least `count`."""
    return 1 << max(count - 1, 0).bit_length()
