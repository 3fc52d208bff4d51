"""The arrows between folders: each imports only from those before it in the way of the data."""

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "passnet"
BESIDE = ("passnet_audit", "passnet_exchange", "passnet_loops", "passnet_service", "passnet_site")
"""Packages that import `passnet`, and neither it nor each other import them."""

LOOPS = SOURCE.parent / "passnet_loops"
ORDER = (
    "version",
    "errors",
    "core",
    "graph",
    "inductor",
    "data",
    "passes",
    "judge",
    "bench",
    "agent",
    "train",
    "optimizer",
    "pages",
    "api",
    "cli",
)
ENTRY_POINTS = {"__init__"}
"""The package's own module, which offers functions of it to its users, lazily."""

ROOM_ARROWS = {"judge/score": {"errors", "core", "judge/score"}}
"""Rooms that may import less than what comes before them."""

WITHOUT_TORCH = (
    *("core/", "judge/", "bench/", "pages/", "cli/", "train/service/"),
    *("passnet_audit/judge/", "passnet_exchange/", "passnet_service/", "passnet_site/"),
    *(f"passnet_audit/nets/{name}.py" for name in ("command", "outcome", "tables")),
)
WITH_TORCH = (
    *("judge/worker/", "bench/profiling/", "core/hardware.py"),
    *("passnet_exchange/pairs/problem_capture.py", "passnet_exchange/pairs/module.py"),
)
"""Folders that do not import torch, but for these rooms within them."""

FOR_PASS_FOLDERS = ("prompts", "include")
"""Folders of code that is copied into pass folders: no part of the package."""

MODULE_NAME = re.compile(
    rf"(passnet|{'|'.join(BESIDE)})(?!\.(?:authors|backends|commands)$)(\.\w+)+(:\w+)?"
)
"""A module of ours, or an object in one; three names are groups of entry points."""


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imported_modules(path: Path) -> set[str]:
    """The modules that a file imports, by a statement or by a name in a string."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and MODULE_NAME.fullmatch(str(node.value)):
            names.add(str(node.value))
    return names


def imported_layers(path: Path) -> set[str]:
    return {
        name.replace(":", ".").split(".")[1]
        for name in imported_modules(path)
        if name.startswith("passnet.")
    }


def imported_files(path: Path) -> set[Path]:
    """The files of our packages that a file imports, lazily or not."""
    files = set()
    for name in imported_modules(path):
        parts = name.replace(":", ".").split(".")
        if parts[0] not in ("passnet", *BESIDE):
            continue
        for end in (len(parts), len(parts) - 1):
            file = SOURCE.parent.joinpath(*parts[:end]).with_suffix(".py")
            if file.is_file():
                files.add(file)
                break
    return files


def source_files() -> list[Path]:
    return [
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if not set(FOR_PASS_FOLDERS) & set(path.relative_to(SOURCE).parts)
    ]


def beside_files() -> list[Path]:
    return [path for name in BESIDE for path in sorted((SOURCE.parent / name).rglob("*.py"))]


def file_id(path: Path) -> str:
    return str(path.relative_to(SOURCE if path.is_relative_to(SOURCE) else SOURCE.parent))


@pytest.mark.parametrize("path", source_files(), ids=file_id)
def test_a_module_imports_only_from_folders_before_its_own(path: Path) -> None:
    own = layer(path)
    if own in ENTRY_POINTS:
        return
    assert own in ORDER, f"{own} is not in the list of layers; add it where it belongs"
    for other in imported_layers(path):
        assert ORDER.index(other) <= ORDER.index(own), f"{own} imports {other}, which is later"


@pytest.mark.parametrize(("room", "allowed"), ROOM_ARROWS.items(), ids=ROOM_ARROWS)
def test_a_pure_room_imports_little(room: str, allowed: set[str]) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        for other in imported_files(path):
            assert file_id(other).startswith(tuple(allowed)), f"{file_id(path)} imports {other}"


@pytest.mark.parametrize("path", [*source_files(), *beside_files()], ids=file_id)
def test_packages_that_are_built_on_passnet_are_imported_only_by_themselves(path: Path) -> None:
    others = {*BESIDE} - {path.relative_to(SOURCE.parent).parts[0]}
    assert not [name for name in imported_modules(path) if name.split(".")[0] in others]


def test_every_package_is_in_the_wheel() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == [f"src/{path.name}" for path in sorted(SOURCE.parent.glob("passnet*"))]
    assert packages[1:] == [f"src/{name}" for name in BESIDE]


def test_the_loops_language_needs_nothing_of_the_llm_that_speaks_it() -> None:
    language = LOOPS / "language"
    for path in language.rglob("*.py"):
        for file in imported_files(path):
            assert file.is_relative_to(SOURCE) or file.is_relative_to(language), path


def test_no_files_import_each_other_in_a_circle() -> None:
    files = [*source_files(), *beside_files()]
    remaining = {path: imported_files(path) - {path} for path in files}
    while free := [path for path, needs in remaining.items() if not needs & remaining.keys()]:
        for path in free:
            del remaining[path]
    assert sorted(map(file_id, remaining)) == []


def test_names_in_strings_are_followed(tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    file.write_text("run('passnet.cli.commands:main')\nimport passnet.judge.judge\n")
    assert imported_layers(file) == {"cli", "judge"}


@pytest.mark.parametrize("path", [*source_files(), *beside_files()], ids=file_id)
def test_a_module_says_in_its_docstring_what_it_owns(path: Path) -> None:
    assert len(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "") > 10


@pytest.mark.parametrize("path", [*source_files(), *beside_files()], ids=file_id)
def test_only_what_runs_beside_candidate_code_imports_torch(path: Path) -> None:
    name = file_id(path)
    if name.startswith(WITHOUT_TORCH) and not name.startswith(WITH_TORCH):
        modules = imported_modules(path)
        assert not [module for module in modules if module.split(".")[0] == "torch"]
        if not name.startswith(("judge/processes/", "judge/worker/")):
            assert not [module for module in modules if module.startswith("passnet.judge.worker")]


TORCH_COMPILERS = re.compile(r"torch\._(inductor|dynamo|functorch)\b|torch\._C\._dynamo\b")
NAMES_COMPILERS = {
    "judge/inspection/rules.py": "names that candidate code may not use",
    "graph/fx/targets.py": "ops that a graph file may hold",
}
"""Files that hold names of these modules as data and call nothing of them."""


def compiler_names(path: Path) -> set[str]:
    """The modules of torch's compilers that a file imports or names in an expression or string."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = imported_modules(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    for node in ast.walk(tree):  # a docstring is an expression by itself
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            names.discard(str(node.value.value))
    return {name for name in names if TORCH_COMPILERS.search(name)}


@pytest.mark.parametrize(
    "path",
    [path for path in [*source_files(), *beside_files()] if "inductor" not in path.parts],
    ids=lambda path: str(path.relative_to(LOOPS.parent)),
)
def test_only_one_room_names_the_insides_of_torchs_compilers(path: Path) -> None:
    if file_id(path) not in NAMES_COMPILERS:
        assert not compiler_names(path)


def public_types(path: Path) -> list[str]:
    """The classes and type aliases of a file that others may import."""
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
            names.append(ast.unparse(node.target))
        elif isinstance(node, ast.Assign) and re.fullmatch(
            r"[A-Z][a-z]\w*", ast.unparse(node.targets[0])
        ):
            names.append(ast.unparse(node.targets[0]))
    return [name for name in names if not name.startswith("_")]


def test_no_two_public_types_share_a_name() -> None:
    files = defaultdict(list)
    for path in [*source_files(), *beside_files()]:
        for name in public_types(path):
            files[name].append(file_id(path))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_a_folder_of_many_files_has_rooms() -> None:
    for folder in {path.parent for path in [*source_files(), *beside_files()]}:
        assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= 15, (
            folder
        )


def test_every_folder_opens_with_a_map_of_its_files_in_twelve_lines() -> None:
    for folder in {path.parent for path in [*source_files(), *beside_files()]} - {SOURCE}:
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        lines = re.findall(r"^ *((?:\w+, )*\w+) {2,}\S", text or "", re.MULTILINE)
        names = [name for line in lines for name in line.split(", ")]
        files = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")]
        rooms = [path.parent.name for path in folder.glob("*/__init__.py")]
        folders = [path.name for path in folder.iterdir() if path.is_dir()]  # of data, too
        assert len(lines) <= 12, folder
        assert len(set(names)) == len(names), folder
        assert {*files, *rooms} <= set(names) <= {*files, *folders}, folder


def test_the_package_opens_to_twelve_folders() -> None:
    folders = [path for path in SOURCE.iterdir() if (path / "__init__.py").is_file()]
    assert len(folders) <= 12


def test_parser_judge_and_score_need_no_torch() -> None:
    import subprocess
    import sys

    script = (
        "import sys, passnet, passnet.cli, passnet.graph.text.files, passnet.graph.canonical,"
        " passnet.judge.score.suite_score, passnet.bench.scores, passnet.bench.run,"
        " passnet.judge.desk.candidates\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("folder", ["benchmarks", "recipes", "integrations"])
def test_what_stands_beside_the_package_imports_names_that_exist(folder: str) -> None:
    import importlib

    packages = ("passnet", *BESIDE)
    for path in sorted((SOURCE.parents[1] / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in packages:
                module = importlib.import_module(node.module or "")
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")
