"""Inductor's generated program, with a clock around every kernel call.

The syntax tree of its function `call` is rewritten: arguments are computed first, then the kernel
is timed alone; the remainder is the wrapper.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType, ModuleType
from typing import Any, Literal, TypeAlias

from passnet.errors import MeasureError
from passnet.inductor.clocks import WALL, Clock
from passnet.inductor.generated_code import GeneratedKernel
from passnet.inductor.moves import moves_only

CallKind: TypeAlias = Literal["copies", "generated", "library"]
KINDS: tuple[CallKind, ...] = ("copies", "generated", "library")

COUNT = len(KINDS)
"""Index of the number of clocks in `spent`."""

WRAPPER_NAMES = frozenset((
    "empty_strided", "empty_strided_cpu", "empty_strided_cpu_pinned", "empty_strided_cuda",
    "empty_strided_xpu", "empty_strided_mtia", "empty_strided_p2p", "reinterpret_tensor",
    "alloc_from_pool", "assert_size_stride", "assert_alignment", "run_intermediate_hooks", "len",
    "print", "float", "int", "bool", "max", "min", "align", "device",
))  # fmt: skip
"""Functions that are part of the wrapper itself."""

LIBRARY_ROOTS = ("extern_kernels", "torch", "aten", "inductor_ops", "_quantized")
MOVING_CALLS = frozenset(("copy_", "clone", "contiguous", "_to_copy", "copy"))

COMPILERS = ("cpp_pybinding", "cpp", "triton", "multi_kernel", "cuda", "halide")


@dataclass(frozen=True, slots=True)
class TimedProgram:
    """A generated function with clocks, the kinds of its timed calls, and its kernels' names."""

    call: Callable[..., Any]
    kinds: tuple[CallKind, ...]
    kernels: tuple[str, ...]


def timed_program(
    call: Callable[..., Any], module: ModuleType, spent: list[int], clock: Clock = WALL
) -> TimedProgram:
    """Return a generated module's function with clocks that add nanoseconds to `spent`.

    `spent` has a sum for each kind of call, and the number of clocks at `COUNT`. A module without
    such a function is a MeasureError.
    """
    tree = ast.parse(_source(module))
    kernels = kernels_of(tree)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    function = next((node for node in functions if node.name == "call"), None)
    if function is None:
        raise MeasureError("the generated program has no function `call`")
    timed = _Timed(kernels)
    body = timed.statements(copy.deepcopy(function.body))
    start = ast.parse("\n".join(f"_{kind} = 0" for kind in KINDS)).body
    function.body = [*start, *body]
    name = function.name = "timed_call"
    namespace: dict[str, Any] = {**vars(module), "_clock": clock, "_spent": spent}
    tree = ast.Module([function], [])
    exec(compile(ast.fix_missing_locations(tree), f"<timed {module.__name__}>", "exec"), namespace)
    timed_call = namespace[name]
    owner = getattr(call, "__self__", None)
    bound = timed_call if owner is None else MethodType(timed_call, owner)
    return TimedProgram(bound, tuple(timed.kinds), tuple(timed.names))


def _source(module: ModuleType) -> str:
    path = getattr(module, "__file__", None)
    if path is None:
        raise MeasureError("the generated program has no file")
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 (a text that torch wrote)
        return stream.read()


def kernels_of(tree: ast.Module) -> dict[str, GeneratedKernel]:
    """Return the kernels of a generated module's syntax tree, by name."""
    kernels = {}
    for statement in tree.body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        function, target = statement.value.func, statement.targets[0]
        if (
            isinstance(target, ast.Name)
            and isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == "async_compile"
            and function.attr in COMPILERS
        ):
            texts = [
                arg.value
                for arg in statement.value.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
            lists = [arg for arg in statement.value.args if isinstance(arg, ast.List)]
            types = tuple(ast.literal_eval(lists[0])) if lists else ()
            kernels[target.id] = GeneratedKernel(target.id, types, texts[-1] if texts else "")
    return kernels


class _Timed:
    """A rewriter that puts clocks around the kernel calls of statements."""

    def __init__(self, kernels: Mapping[str, GeneratedKernel]) -> None:
        self._kernels = kernels
        self.kinds: list[CallKind] = []
        self.names: list[str] = []

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [timed for statement in body for timed in self._statement(statement)]

    def _statement(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        if isinstance(statement, ast.With):
            statement.body = self.statements(statement.body)
        elif isinstance(statement, (ast.If, ast.For, ast.While)):
            statement.body = self.statements(statement.body)
            statement.orelse = self.statements(statement.orelse)
        elif isinstance(statement, ast.Return):
            yield from self._epilogue()
        elif isinstance(statement, (ast.Expr, ast.Assign)) and isinstance(
            statement.value, ast.Call
        ):
            kind = self._kind(statement.value)
            if kind is not None:
                yield from self._clocked(statement, statement.value, kind)
                return
        yield statement

    def _kind(self, call: ast.Call) -> CallKind | None:
        """Return the kind of a called kernel; None for the wrapper's own work."""
        path = ast.unparse(call.func).split(".")
        root, last = path[0], path[-1]
        if root in self._kernels:
            self.names.append(root)
            code = self._kernels[root]
            return "copies" if moves_only(code.name, code.text) else "generated"
        if len(path) > 1 and any(name in MOVING_CALLS for name in path[1:]):
            return "copies"
        if root in LIBRARY_ROOTS and "_alloc_from_pool" not in path and last != "empty":
            return "library"
        if len(path) > 1 or root in WRAPPER_NAMES:
            return None
        return "library"  # such as a kernel that was chosen by timing

    def _clocked(self, statement: ast.stmt, call: ast.Call, kind: CallKind) -> Iterator[ast.stmt]:
        self.kinds.append(kind)
        hoisted = []

        def hoist(value: ast.expr) -> ast.expr:
            if not any(isinstance(node, ast.Call) for node in ast.walk(value)):
                return value
            hoisted.append(f"_argument_{len(hoisted)}")
            assignments.append(ast.Assign([ast.Name(hoisted[-1], ast.Store())], value))
            return ast.Name(hoisted[-1], ast.Load())

        assignments: list[ast.stmt] = []
        call.args = [hoist(value) for value in call.args]
        for keyword in call.keywords:
            keyword.value = hoist(keyword.value)
        yield from assignments
        yield from ast.parse("_start = _clock()").body
        yield statement
        yield from ast.parse(f"_{kind} += _clock() - _start").body
        if hoisted:
            yield from ast.parse(f"del {', '.join(hoisted)}").body

    def _epilogue(self) -> Iterator[ast.stmt]:
        """Yield the statements that add the clocks' sums to `spent`."""
        lines = [f"_spent[{index}] += _{kind}" for index, kind in enumerate(KINDS)]
        yield from ast.parse("\n".join([*lines, f"_spent[{COUNT}] += {len(self.kinds)}"])).body


def kernel_texts(module: ModuleType) -> dict[str, GeneratedKernel]:
    """Return the kernels that a generated module has compiled, by name."""
    return kernels_of(ast.parse(_source(module)))
