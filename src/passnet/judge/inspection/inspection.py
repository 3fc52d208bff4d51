"""The static inspection of a pass folder: what its code uses that the rules name, from its text.

Text decides what a name stands for that is imported, assigned, looped over, returned, or given to a
function of the folder, and `rules.py` what that means. What text does not decide counts as the
worst it may be, a tensor, whose methods are flagged. It is no tensor only where that follows:

- numbers of Python and numpy, and what operators and functions make of nothing but numbers
- what comes from modules that know no tensors (`rules.OWN_OBJECTS`), and from its methods
- a parameter, if the function is only called, by its name, and is given no tensor; an attribute of
  `self`, if the class is only called, and the folder assigns no tensor to an attribute so named
- an object that is given what a tensor would refuse, as in `seen.add("text")`

Annotations decide nothing, as nobody enforces them. Not seen at all are operators on tensors, what
lies in containers, and attributes whose names are computed, but for those of torch: what runs, the
judge observes. Code below `if __name__ == "__main__":` does not run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from passnet.errors import PassFolderError
from passnet.judge.findings import Finding
from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.bindings import (
    bind_names,
    close_names,
    is_plain_class,
    made_of,
    num_paths,
    parts_of,
)
from passnet.judge.inspection.names import (
    UNKNOWN,
    Function,
    follow,
    resolve,
    resolve_all,
    text_of,
    texts_of,
)
from passnet.judge.inspection.rules import Rules, RuleVerdict
from passnet.judge.inspection.sources import Code, Module, Scope, imports_of, load_module, owner_of
from passnet.passes.folder import PACKAGE, PassFolder

MAX_EVIDENCE_CHARS = 100
MAX_ROUNDS = 50
"""Of following names through each other until nothing more is found out."""
TRACED = ("pattern", "replacement_args")
WEIGHTS = {"reject": 0, "flag": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class _At:
    """Where the walk is. `traced`: within a pattern; `kernel`: in code that Triton compiles."""

    module: Module
    scope: Scope
    rules: Rules
    traced: bool = False
    kernel: bool = False


def inspect_code(folder: PassFolder, rules: Rules) -> list[Finding]:
    """What the code of a pass folder uses that the rules name, by file and line.

    The passes on the list are inspected, and every module of the folder that they import. The
    bodies of `pattern` and `replacement_args` may hold any torch op.

    Raises:
        PassFolderError: a module is not Python, too large or too deeply nested to be read, or its
            names stand for each other in too many steps to be followed.
    """
    roots = {PACKAGE: folder.path} | {item.package: item.path.parent for item in folder.passes}
    code = Code(roots)
    for item in folder.passes:
        load_module(code, f"{item.package}.{item.name}", is_pass=True)
    for _ in range(MAX_ROUNDS):
        known = num_paths(code)
        _for_each_module(code, bind_names, rules)
        if num_paths(code) == known and not close_names(code):
            break
    else:
        raise PassFolderError(f"{folder.path}: names stand for each other in too many steps")
    _for_each_module(code, _visit_module, rules)
    return [code.found[key] for key in sorted(code.found, key=lambda key: (key[1], key[2], key[0]))]


def _for_each_module(code: Code, step: Callable[[Code, Module, Rules], None], rules: Rules) -> None:
    for module in code.modules.values():
        try:
            step(code, module, rules)
        except RecursionError as cause:
            raise PassFolderError(
                f"{module.place}: nested too deeply to be inspected; write it in more lines"
            ) from cause


def _visit_module(code: Code, module: Module, rules: Rules) -> None:
    at = _At(module, module.scope, rules)
    _visit_binary(code, at, module.tree, module.name)
    for node in module.tree.body:
        match node:
            case ast.If(test=test, orelse=children) if _is_false_here(code, module, test):
                pass
            case _:
                children = [node]
        for child in children:
            _visit(code, at, child)


def _is_false_here(code: Code, module: Module, test: ast.expr) -> bool:
    """Whether a condition is `__name__ == "__main__"`, in a module that is only imported."""
    match test:
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant("__main__")]
        ):
            return not code.renames and code.modules.keys().isdisjoint(module.scope.stars)
    return False


def _visit(code: Code, at: _At, node: ast.AST) -> None:
    """Report what a statement or expression uses, and go on within it."""
    match node:
        case ast.Import() | ast.ImportFrom():
            for _, _, used in imports_of(code, at.module.name, node):
                _visit_binary(code, at, node, used)
                for path in follow(code, used, set()):
                    _report_path(code, at, node, path)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
            _visit_definition(code, at, node)
            return
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_traced(at, name):
            given = value.body if isinstance(value, ast.Lambda) else value
            if isinstance(given, ast.Name | ast.Attribute) or given is not value:
                inner = code.scopes.get(value, at.scope)
                _visit(code, replace(_traced(at), scope=inner), given)
                return
        case ast.AnnAssign(annotation=annotation, value=value):
            _visit(code, replace(at, rules=_traced(at).rules), annotation)
            for child in filter(None, (node.target, value)):
                _visit(code, at, child)
            return
        case ast.Name() | ast.Attribute():
            _visit_name(code, at, node)
            return
        case ast.arg():
            at = replace(at, rules=_traced(at).rules)
        case ast.Assign(
            targets=[ast.Subscript(value=value, slice=ast.Constant(key))], value=ast.Constant()
        ) if key in meaning.SWITCHES and resolve(code, at.scope, value) == {"os.environ"}:
            return
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            if "os.environ" in resolve(code, at.scope, value):
                _report(code, at, node, meaning.PERSISTENCE, "os.environ is written")
        case ast.Call():
            _visit_call(code, at, node)
        case ast.BinOp(op=ast.MatMult(), left=left, right=right):
            _visit_matmul(code, at, node, [left, right])
        case ast.AugAssign(op=ast.MatMult(), target=target, value=value):
            _visit_matmul(code, at, node, [target, value])
        case ast.Expr(value=ast.Constant()):
            return  # a docstring
        case ast.Constant(value=str(text)) if not at.traced:
            for word in sorted(at.rules.texts):
                if word in text:
                    _report(code, at, node, meaning.METHOD, f"{word} in native code")
        case ast.Global() if at.traced:
            text = "a pattern that assigns to names of its module"
            _report(code, at, node, meaning.EVASION, text)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            _visit(code, at, node.generators[0].iter)
    inner = replace(at, scope=code.scopes.get(node, at.scope))
    for child in ast.iter_child_nodes(node):
        _visit(code, inner, child)


def _visit_binary(code: Code, at: _At, node: ast.AST, name: str) -> None:
    """Report what would be imported as a module of the folder, and is not source."""
    root, *inner = name.split(".")
    if root in code.roots and inner:
        path = code.roots[root].joinpath(*inner)
        for file in sorted(path.parent.glob(f"{path.name}.*")):
            if file.suffix in (".so", ".pyd", ".pyc"):
                _report(code, at, node, meaning.EVASION, f"{file.name} holds no source to inspect")


def _is_traced(at: _At, name: str) -> bool:
    return at.module.is_pass and at.scope is at.module.scope and name in TRACED


def _traced(at: _At) -> _At:
    """The same place, where torch may be used."""
    return replace(at, traced=True, rules=replace(at.rules, torch=None, methods=frozenset()))


def _visit_definition(code: Code, at: _At, node: Function | ast.ClassDef) -> None:
    inner = replace(at, scope=code.scopes[node])
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    if isinstance(node, ast.ClassDef):
        _visit_class(code, at, node)
    elif isinstance(node, ast.FunctionDef) and _is_traced(at, node.name):
        inner = replace(_traced(at), scope=inner.scope)
        for path in resolve_all(code, at.scope, decorators):
            if path == UNKNOWN or owner_of(code, path):
                text = f"{node.name} is handed to a decorator"
                _report(code, at, node, meaning.PATTERN_CALLED, text)
    calls = [item.func if isinstance(item, ast.Call) else item for item in decorators]
    if not meaning.KERNEL_DECORATORS.isdisjoint(resolve_all(code, at.scope, calls)):
        inner = replace(inner, kernel=True)
    outside, inside = parts_of(node)
    for child in outside:
        is_type = child is getattr(node, "returns", None)
        _visit(code, _traced(at) if is_type else at, child)
    for child in inside:
        _visit(code, inner, child)


def _visit_class(code: Code, at: _At, node: ast.ClassDef) -> None:
    bases = sorted(resolve_all(code, at.scope, node.bases))
    tensors = [path for path in bases if path.startswith("torch.") and path.endswith("Tensor")]
    if tensors:
        text = f"class {node.name} is a {tensors[0]}"
        _report(code, at, node, meaning.COMPARISON, text)
    names = code.scopes[node].names.keys()
    overloads = meaning.OVERLOADS & names
    if "__hash__" in names and is_plain_class(code, made_of(code, at.scope, node)):
        overloads -= meaning.COMPARISONS  # a key, such as of a cache
    for name in sorted(overloads):
        _report(code, at, node, meaning.COMPARISON, f"class {node.name} defines {name}")


def _visit_name(code: Code, at: _At, node: ast.Name | ast.Attribute) -> None:
    if isinstance(node.ctx, ast.Load):
        for path in resolve(code, at.scope, node):
            _report_path(code, at, node, path)
    elif isinstance(node, ast.Attribute):
        _visit_patch(code, at, node, node.value, node.attr)
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        if verdict := at.rules.attributes.get(root.attr):
            _report(code, at, root, verdict, f".{root.attr}")
        if root.attr == "__dict__" and resolve(code, at.scope, root.value) & code.modules.keys():
            _report(code, at, root, meaning.EVASION, "the names of a module by text")
        root = root.value
    if not isinstance(root, ast.Name):
        _visit(code, at, root)


def _visit_patch(code: Code, at: _At, node: ast.AST, owner: ast.expr, attr: str) -> None:
    """Report an assignment to an attribute of a module, or of what is in one."""
    for path in resolve(code, at.scope, owner):
        foreign = not path.startswith(("?", "builtins.")) and "()" not in path
        if foreign and owner_of(code, path) is None:
            _report(code, at, node, meaning.PATCH, f"{path}.{attr} is assigned to")


def _visit_matmul(code: Code, at: _At, node: ast.AST, operands: list[ast.expr]) -> None:
    own = all("()" in path for path in resolve_all(code, at.scope, operands))
    if at.rules.methods and not at.kernel and not own:
        _report(code, at, node, meaning.METHOD, "@ on what may be tensors")


def _visit_call(code: Code, at: _At, node: ast.Call) -> None:
    names = resolve(code, at.scope, node.func)
    called = names
    if not meaning.APPLIERS.isdisjoint(names) and node.args:
        called = names | resolve(code, at.scope, node.args[0])
    for path in sorted(called):
        method = path.rpartition(".")[2]
        computes = path.startswith("?.") and method in at.rules.methods and not at.kernel
        if computes and not (path in names and _is_refused(code, at, method, node)):
            _report(code, at, node, meaning.METHOD, f".{method}(...) on what may be a tensor")
    _visit_reflection(code, at, node, {path.removeprefix("builtins.") for path in names})
    if names & meaning.CLASS_MAKERS and len(node.args) + len(node.keywords) > 1:
        _report(code, at, node, meaning.COMPARISON, "a class without a class statement")
    for path in names & set(meaning.WRITERS):
        _visit_open(code, at, node, path, meaning.WRITERS[path])
    if at.rules.torch is not None and names.isdisjoint(meaning.REFLECTION):
        given = [*node.args, *(item.value for item in node.keywords)]
        if "torch" in resolve_all(code, at.scope, given):
            _report(code, at, node, meaning.EVASION, "the module torch is handed on")


def _is_refused(code: Code, at: _At, method: str, node: ast.Call) -> bool:
    """Whether the call of a method would raise if its object were a tensor."""
    if method in meaning.NO_OPERANDS:
        named = any(item.arg for item in node.keywords)
        return named or any(not isinstance(item, ast.Starred) for item in node.args)
    return method in meaning.NO_TEXT and all(
        path.startswith(("str:", "literal:")) or path.removesuffix("()") in meaning.CONTAINERS
        for path in resolve_all(code, at.scope, node.args[:1] or [node])
    )


def _visit_reflection(code: Code, at: _At, node: ast.Call, names: set[str]) -> None:
    """Report attributes that are reached or set by name."""
    if not node.args:
        return
    owners = resolve(code, at.scope, node.args[0])
    from_torch = any(path.split(".")[0] == "torch" for path in owners)
    key = node.args[1:2]
    given, is_all = texts_of(code, at.scope, key)
    if "getattr" in names:
        for path in resolve(code, at.scope, node):
            _report_path(code, at, node, path)
        for name in given & at.rules.attributes.keys():
            _report(code, at, node, at.rules.attributes[name], f".{name}")
    if names & (meaning.SETTERS | {"getattr"}) and not is_all:
        variable = any(isinstance(item, ast.Name) for part in key for item in ast.walk(part))
        if from_torch or not variable:
            _report(code, at, node, meaning.EVASION, f"{min(names)} with a computed name")
    if names & meaning.SETTERS:
        _visit_patch(code, at, node, node.args[0], min(given) if is_all else "(any)")
        for module in owners & code.modules.keys():
            _report(code, at, node, meaning.EVASION, f"{min(names)} on {module}")
    if "vars" in names and any(not path.startswith(("?", "builtins.")) for path in owners):
        _report(code, at, node, meaning.EVASION, f"vars({min(owners)})")


def _visit_open(code: Code, at: _At, node: ast.Call, path: str, position: int) -> None:
    """Report a file that is opened for more than reading, or in a mode that text does not tell."""
    given = [item.value for item in node.keywords if item.arg in ("mode", None)]
    given += node.args[position : position + 1]
    given += [item for item in node.args if isinstance(item, ast.Starred)]
    for mode in given:
        letters = set("w" if (text := text_of([mode])) is None else text)
        if letters <= set("rwxabtU+") and letters & set("wax+"):
            _report(code, at, node, meaning.PERSISTENCE, f"{path.split('.')[1]} to write")


def _report_path(code: Code, at: _At, node: ast.AST, path: str) -> None:
    """Report what the rules say of a dotted path that is used."""
    owner = owner_of(code, path)
    if owner is not None:
        name = path.removeprefix(owner.name + ".").partition(".")[0]
        loaded = not isinstance(node, ast.Import | ast.ImportFrom)
        if owner.is_pass and name in TRACED and loaded and not at.traced:
            _report(code, at, node, meaning.PATTERN_CALLED, f"{path} is used as code")
    elif not path.startswith("?") and "()" not in path:
        for verdict in meaning.meanings(at.rules, path):
            _report(code, at, node, verdict, path)


def _report(code: Code, at: _At, node: ast.AST, verdict: RuleVerdict, what: str) -> None:
    weight, name = verdict
    line: int = getattr(node, "lineno", 1)
    text = at.module.lines[line - 1].strip() if line <= len(at.module.lines) else ""
    if len(text) > MAX_EVIDENCE_CHARS:
        text = text[:MAX_EVIDENCE_CHARS] + "..."
    key = (name, at.module.place, line)
    before = code.found.get(key)
    if before is None or WEIGHTS[weight] < WEIGHTS[before.weight]:
        code.found[key] = Finding(weight, name, f"{what}: `{text}`", f"{at.module.place}:{line}")
