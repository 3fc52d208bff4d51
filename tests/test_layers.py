"""The arrows between folders: each imports only from those before it in the way of the data."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "passnet"
ORDER = (
    "errors",
    "records",
    "jobs",
    "graph",
    "passes",
    "extract",
    "mine",
    "dataset",
    "score",
    "suite",
    "judge",
    "bench",
    "report",
    "agent",
    "service",
    "train",
    "optimizer",
    "profiling",
    "site",
    "cli",
)
ENTRY_POINTS = {"__init__"}
"""The package's own module, which offers `capture` to its users, lazily."""

OWN_ARROWS = {"score": {"errors", "records", "score"}}
"""Folders that may import less than what comes before them."""

WITHOUT_TORCH = ("judge/", "score/", "records/", "jobs/", "bench/", "report/", "cli/", "service/")
WITH_TORCH = ("judge/worker/",)
"""Folders that do not import torch, but for those within them that run beside candidate code."""

FOR_PASS_FOLDERS = ("prompts", "include")
"""Folders of code that is copied into pass folders: no part of the package."""

MODULE_NAME = re.compile(r"passnet(\.\w+)+(:\w+)?")


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


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


def source_files() -> list[Path]:
    return [
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if not set(FOR_PASS_FOLDERS) & set(path.relative_to(SOURCE).parts)
    ]


def file_id(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", source_files(), ids=file_id)
def test_a_module_imports_only_from_folders_before_its_own(path: Path) -> None:
    own = layer(path)
    if own in ENTRY_POINTS:
        return
    assert own in ORDER, f"{own} is not in the list of layers; add it where it belongs"
    for other in imported_layers(path) - {"__version__"}:
        assert ORDER.index(other) <= ORDER.index(own), f"{own} imports from {other}, which is later"
        assert other in OWN_ARROWS.get(own, ORDER), f"{own} imports from {other}"


def test_names_in_strings_are_followed(tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    file.write_text("run('passnet.cli.commands:main')\nimport passnet.judge.judge\n")
    assert imported_layers(file) == {"cli", "judge"}


@pytest.mark.parametrize("path", source_files(), ids=file_id)
def test_a_module_says_in_its_docstring_what_it_owns(path: Path) -> None:
    assert len(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "") > 10


@pytest.mark.parametrize("path", source_files(), ids=file_id)
def test_only_what_runs_beside_candidate_code_imports_torch(path: Path) -> None:
    name = file_id(path)
    if name.startswith(WITHOUT_TORCH) and not name.startswith(WITH_TORCH):
        modules = imported_modules(path)
        assert not [module for module in modules if module.split(".")[0] == "torch"]
        if not name.startswith(("judge/processes/", "judge/worker/")):
            assert not [module for module in modules if module.startswith("passnet.judge.worker")]


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
    for path in source_files():
        for name in public_types(path):
            files[name].append(file_id(path))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_every_folder_opens_with_a_map_of_its_files() -> None:
    for folder in {path.parent for path in source_files()} - {SOURCE}:
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        lines = re.findall(r"^ *(\w+) {2,}\S", text or "", re.MULTILINE)
        files = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")]
        rooms = [path.parent.name for path in folder.glob("*/__init__.py")]
        folders = [path.name for path in folder.iterdir() if path.is_dir()]  # of data, too
        assert len(set(lines)) == len(lines), folder
        assert {*files, *rooms} <= set(lines) <= {*files, *folders}, folder


def test_parser_judge_and_score_need_no_torch() -> None:
    import subprocess
    import sys

    script = (
        "import sys, passnet, passnet.cli, passnet.graph.files, passnet.graph.canonical,"
        " passnet.score.suite_score, passnet.bench.scores, passnet.bench.run,"
        " passnet.bench.candidates\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
