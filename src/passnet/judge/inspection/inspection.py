"""The static inspection of a pass folder: findings on the names that its text uses.

The text tells the origin of a name that is imported, assigned, looped over, returned, or passed to
a function of the folder; `rules.py` tells its meaning. Anything of unknown origin may be a tensor.

Annotations decide nothing, as nobody enforces them. The text does not show methods and operators of
tensors, nor the contents of containers: the judge counts the ops of torch at run time.
Code below `if __name__ == "__main__":` does not run.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from passnet.core.records.untrusted import read_untrusted
from passnet.core.terminal.visible_text import source_lines
from passnet.errors import PassFolderError
from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection import sources
from passnet.judge.inspection.bindings import bind_names, is_own, is_plain_class
from passnet.judge.inspection.excuses import excuse
from passnet.judge.inspection.names import (
    UNKNOWN,
    attributes_by_name,
    follow,
    formatted,
    resolve,
    texts,
)
from passnet.judge.inspection.native import expanded, folded
from passnet.judge.inspection.rules import Rules, Uses
from passnet.judge.verdict.findings import Finding
from passnet.passes.folder import MAX_FILE_BYTES, PACKAGE, PassFolder

MAX_EVIDENCE_CHARS = 100
SEVERITIES = ("reject", "flag", "note")


def inspect_code(folder: PassFolder, rules: Rules) -> list[Finding]:
    """Return the findings on the code of a pass folder, by file and line.

    The listed passes are inspected, and every module of the folder that they import; without a list
    all modules. The bodies of `pattern`, and code that only patterns use, may hold any torch op.
    Raises PassFolderError for a module that is not Python, or too large or entangled to be read.
    """
    roots = {PACKAGE: folder.path} | {file.package: file.path.parent for file in folder.passes}
    passes = {file.module: file.path for file in folder.passes}
    code = sources.Code(rules, roots, passes=passes, bare=sources.find_bare_names(roots))
    if folder.path.name.isidentifier() and folder.path.name not in meaning.KNOWN_ROOTS:
        code.roots = {
            folder.path.name: folder.path
        } | roots  # its name, if Python finds what holds it
    try:
        every = (name for names in code.bare.values() for name in names)
        for name in sorted(code.passes or every):
            sources.load_module(code, name)
        bind_names(code)
        excuse(code)
        rows = [row for scope, node in code.nodes for row in _findings(code, scope, node)]
        rows += _native_findings(code)
    except RecursionError as cause:
        raise PassFolderError(
            f"{code.file}: nested too deeply to be inspected; write it in more lines"
        ) from cause
    findings: dict[tuple[str, int, str], Finding] = {}
    for key, finding in sorted(rows, key=lambda row: (row[0], SEVERITIES.index(row[1].weight))):
        findings.setdefault(key, finding)
    return list(findings.values())


def _findings(
    code: sources.Code, scope: str, node: ast.AST
) -> Iterator[tuple[tuple[str, int, str], Finding]]:
    module, line = sources.module_of(code, scope), getattr(node, "lineno", None)
    code.file = module.file
    is_imported = not code.renames and module.stars.isdisjoint(code.modules)
    if is_imported and any(line in lines for lines in module.self_tests):
        return
    line, uses = line or 1, [*_uses(code, scope, node)]
    is_made = isinstance(node, ast.expr) and not isinstance(node, ast.Name)
    made = folded(code, scope, node) if is_made else None
    if made is not None and not sources.is_traced(code, scope):
        uses += _text_uses(code.rules, made)
        uses += _text_uses(code.rules, _as_compiled(made))
    for (severity, name), use in uses:
        text = "".join(module.lines[line - 1 : line]).strip()
        text = text if len(text) <= MAX_EVIDENCE_CHARS else text[:MAX_EVIDENCE_CHARS] + "..."
        finding = Finding(severity, name, f"{use}: `{text}`", f"{module.file}:{line}")
        yield (module.file, line, name), finding


def _native_findings(code: sources.Code) -> Iterator[tuple[tuple[str, int, str], Finding]]:
    for folder, root in {folder: root for root, folder in code.roots.items()}.items():
        for path in sorted(folder.rglob("*")):
            if path.suffix not in meaning.NATIVE_SUFFIXES or not path.is_file():
                continue
            name = path.relative_to(folder).as_posix()
            file = name if root == PACKAGE else f"{root}/{name}"
            read = read_untrusted(path, MAX_FILE_BYTES, PassFolderError)
            text = read.decode("utf-8", "replace")
            seen = set[str]()
            for number, part in [
                *enumerate(source_lines(text), 1),
                (1, _as_compiled(text, path.parent)),
            ]:
                uses = [*_text_uses(code.rules, part)]
                for (severity, finding_name), use in uses:
                    if number > 1 or use not in seen:
                        finding = Finding(severity, finding_name, use, f"{file}:{number}")
                        yield (file, number, finding_name), finding
                seen |= {use for _, use in uses}


def _as_compiled(text: str, folder: Path | None = None) -> str:
    try:
        return expanded(text, folder)
    except ValueError as cause:
        raise PassFolderError(str(cause)) from cause


def _text_uses(rules: Rules, text: str) -> Uses:
    for pattern, verdict in rules.texts:
        for word in sorted({match.group() for match in pattern.finditer(text)}):
            yield verdict, f"{' '.join(word.split())[:MAX_EVIDENCE_CHARS]} in native code"


def _rules(code: sources.Code, scope: str, node: ast.AST) -> Rules:
    is_matched = node in code.serving or sources.is_traced(code, scope, ("pattern",))
    if is_matched or sources.ANNOTATION in scope:
        return replace(code.rules, torch=None)
    return code.rules


def _uses(code: sources.Code, scope: str, node: ast.AST) -> Uses:
    rules = _rules(code, scope, node)
    match node:
        case ast.Module():
            yield from _without_source(code, scope)
        case ast.Import() | ast.ImportFrom():
            for _, _, loaded in sources.imports_of(code, sources.module_of(code, scope), node):
                yield from _without_source(code, loaded)
                for path in sorted(follow(code, loaded)):
                    if path.split(".")[0] == "torch":  # its use computes
                        yield from meaning.uses(replace(code.rules, torch=None), path)
                    elif path != "threading" and path.split(".")[0] != "importlib":
                        yield from meaning.uses(rules, path)
        case ast.FunctionDef(name) if "/" not in scope and sources.is_traced(
            code, f"{scope}/{name}"
        ):
            for path in resolve(code, scope, *node.decorator_list):
                if path == UNKNOWN or "/" in path:
                    yield meaning.PATTERN_CALLED, f"{name} is handed to a decorator"
        case ast.ClassDef(class_name, bases) if node not in code.serving:
            path = sources.scope_within(scope, node)
            for base in sorted(resolve(code, scope, *bases)):
                if base.startswith("torch.") and base.endswith("Tensor"):
                    yield meaning.COMPARISON, f"class {class_name} is a {base}"
            is_key = f"{path}/__hash__" in code.names and is_plain_class(code, path)
            for name in sorted(meaning.OVERLOADS - (meaning.COMPARISONS if is_key else set())):
                if f"{path}/{name}" in code.names:
                    yield meaning.COMPARISON, f"class {class_name} defines {name}"
        case ast.Name() | ast.Attribute() if node not in code.excused:
            yield from _name_uses(code, scope, node, rules)
        case ast.Assign([ast.Attribute(_, "__module__")], ast.Constant(str(text))):
            if rules.torch is not None and text.split(".")[0] == "torch":
                yield meaning.METHOD, f"an object that claims to be of {text}"
        case ast.Compare(left, _, others):
            yield from _types_asked(code, scope, [left, *others])
        case ast.Subscript(value, key, ast.Load()) if (
            "ctypes()" in resolve(code, scope, value)
            and texts(resolve(code, scope, key)) is None
            and not isinstance(key, ast.Slice)
        ):
            yield meaning.EVASION, "a symbol of a computed name"
        case ast.Subscript(value, _, ast.Store() | ast.Del()):
            if "os.environ" in resolve(code, scope, value):
                yield meaning.PERSISTENCE, "os.environ is written"
        case ast.Call():
            yield from _call_uses(code, scope, node, rules)
        case ast.BinOp(left, ast.MatMult(), right) | ast.AugAssign(left, ast.MatMult(), right):
            is_own = all("()" in path for path in resolve(code, scope, left, right))
            if rules.torch is not None and not is_own and not _is_compiled(code, scope):
                yield meaning.METHOD, "@ on possible tensors"
        case ast.MatchClass(kwd_attrs=names):
            for name in names:
                if verdict := rules.names.get(f".{name}"):
                    yield verdict, f".{name} of a matched object"
        case ast.Global(names) if sources.is_traced(code, scope):
            module = scope.partition("/")[0]
            if not code.matched.issuperset(f"{module}/{name}" for name in names):
                yield meaning.EVASION, "a pattern that assigns to names of its module"


def _types_asked(code: sources.Code, scope: str, nodes: Sequence[ast.expr]) -> Uses:
    """Yield questions for types that reveal the caller of a replacement."""
    for node in nodes:
        words = [node.value] if isinstance(node, ast.Constant) else []
        named = meaning.HARNESS_TYPES & resolve(code, scope, node)
        for name in sorted(named | meaning.HARNESS_TYPE_NAMES.intersection(words)):
            if not sources.is_traced(code, scope):
                yield meaning.HARNESS, f"asks for the type {name}"


def _without_source(code: sources.Code, name: str) -> Uses:
    root, *inner = name.split(".")
    if root in code.roots and inner:
        base = code.roots[root].joinpath(*inner)
        for file in sorted(base.parent.glob(f"{base.name}.*")):
            if file.suffix in (".so", ".pyd", ".pyc"):
                yield meaning.EVASION, f"{file.name} holds no source to inspect"


def _name_uses(code: sources.Code, scope: str, node: ast.expr, rules: Rules) -> Uses:
    is_matched = node in code.serving or sources.is_traced(code, scope)
    match node:
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            for path in sorted(resolve(code, scope, node)):
                yield from meaning.uses(rules, path)
                if path in meaning.NEVER_HANDED_ON and node not in code.called:
                    yield meaning.EVASION, f"{path} is handed on"
                if sources.is_traced(code, path) and not is_matched:
                    name = re.sub("@[0-9:]+", "", path).replace("/", ".")
                    yield meaning.PATTERN_CALLED, f"{name} is used as code"
        case ast.Attribute(owner, attr):
            yield from _patched(code, scope, owner, attr)
    while isinstance(node, ast.Attribute):
        if verdict := code.rules.names.get(f".{node.attr}"):
            yield verdict, f".{node.attr}"
        if node.attr == "__dict__" and not is_own(code, scope, node.value):
            yield meaning.EVASION, "attributes by text"
        yield from _text_uses(code.rules, node.attr)
        node = node.value


def _patched(code: sources.Code, scope: str, owner: ast.expr, attr: str) -> Uses:
    for path in sorted(resolve(code, scope, owner)):
        is_ours = path in code.modules or path.startswith("builtins.")
        if meaning.is_dotted(path) and not is_ours and attr != "__signature__":
            patched = meaning.prefixes_of(f"{path}.{attr}")
            verdict = meaning.PATCH if meaning.TIMERS & {*patched} else meaning.LIBRARY_PATCH
            verdict = meaning.PROXY_PATCH if meaning.PROXIES & {*patched} else verdict
            yield verdict, f"{path}.{attr} is assigned to"


def _call_uses(code: sources.Code, scope: str, call: ast.Call, rules: Rules) -> Uses:
    called = resolve(code, scope, call.func)
    if called & meaning.TYPE_QUESTIONS and len(call.args) > 1:
        types = call.args[1]
        parts = types.elts if isinstance(types, ast.Tuple) else [types]
        yield from _types_asked(code, scope, parts)
    if "builtins.vars" in called and not (call.args and is_own(code, scope, call.args[0])):
        yield meaning.EVASION, "vars"
    if called & meaning.SELECTORS:
        is_method = "operator.methodcaller" in called
        names = texts(resolve(code, scope, *call.args[: 1 if is_method else None]))
        if names is None or any(f".{name}" in rules.names for name in names):
            yield meaning.EVASION, min(called)
    by_name = {path.removeprefix("builtins.") for path in called} & meaning.BY_NAME
    if by_name and call.args:
        yield from _reflected(code, scope, call, by_name, rules)
    for path in sorted(called & meaning.WRITERS.keys()):
        yield from _opened(call, path)
    passed = [*call.args, *(keyword.value for keyword in call.keywords)]
    if called & meaning.CLASS_MAKERS and len(passed) > 1:
        yield meaning.COMPARISON, "a class without a class statement"
    is_handed_on = "torch" in resolve(code, scope, *passed) and not called & meaning.REFLECTION
    if is_handed_on and rules.torch is not None:
        yield meaning.EVASION, "the module torch is handed on"


def _is_compiled(code: sources.Code, scope: str) -> bool:
    while scope not in code.modules:
        node, scope = code.definitions.get(scope), scope.rpartition("/")[0]
        decorators = getattr(node, "decorator_list", [])
        makers = [getattr(decorator, "func", decorator) for decorator in decorators]
        if resolve(code, scope, *makers) & meaning.KERNEL_DECORATORS:
            return True
    return False


def _reflected(
    code: sources.Code, scope: str, call: ast.Call, called: set[str], rules: Rules
) -> Uses:
    setters, owner = called & meaning.SETTERS, call.args[0]
    attributes, is_all = attributes_by_name(code, scope, call)
    for attribute in attributes:
        if setters:
            yield from _patched(code, scope, owner, attribute.attr)
        else:
            yield from _name_uses(code, scope, attribute, rules)
    owners = resolve(code, scope, owner)
    made = [formatted(code, scope, key) for key in call.args[1:2]] if owners <= {"ctypes()"} else []
    for text in [text for names in made for text in names or ()]:
        yield from _text_uses(code.rules, text)
    if not is_all and not any(made) and not is_own(code, scope, owner):
        yield meaning.EVASION, f"{min(called)} with a computed name"
        if setters:
            yield from _patched(code, scope, owner, "(any)")
    for module in sorted(owners & code.modules.keys()) if setters else []:
        yield meaning.EVASION, f"{min(setters)} on {module}"


def _opened(call: ast.Call, path: str) -> Uses:
    position = meaning.WRITERS[path]
    modes = [keyword.value for keyword in call.keywords if keyword.arg in ("mode", None)]
    modes += call.args[position : position + 1]
    modes += [node for node in call.args if isinstance(node, ast.Starred)]
    for mode in modes:
        text = mode.value if isinstance(mode, ast.Constant) else None
        letters = set(text if isinstance(text, str) else "w")
        if letters <= set("rwxabtU+") and letters & set("wax+"):
            yield meaning.PERSISTENCE, f"{path.split('.')[1]} to write"
