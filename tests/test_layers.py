"""The arrows between folders: each imports only from those before it in the way of the data."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "passnet"
ORDER = (
    "errors",
    "records",
    "resume",
    "pages",
    "parquet",
    "lifetime",
    "isolated",
    "executors",
    "graph",
    "extract",
    "mine",
    "dataset",
    "passes",
    "judge",
    "score",
    "bench",
    "report",
    "agent",
    "cli",
)
ENTRY_POINTS = {"__init__"}
"""The package's own module, which offers `capture` to its users, lazily."""


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [item.name for item in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "passnet":
                names = [f"passnet.{item.name}" for item in node.names]
        found.update(name.split(".")[1] for name in names if name.startswith("passnet."))
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_a_module_imports_only_from_folders_before_its_own(path: Path) -> None:
    own = layer(path)
    if own in ENTRY_POINTS:
        return
    assert own in ORDER, f"{own} is not in the list of layers; add it where it belongs"
    for other in imported_layers(path) - {"__version__"}:
        assert ORDER.index(other) <= ORDER.index(own), f"{own} imports from {other}, which is later"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_a_module_says_in_its_docstring_what_it_owns(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_parser_judge_and_score_need_no_torch() -> None:
    import subprocess
    import sys

    script = (
        "import sys, passnet, passnet.cli, passnet.graph.files, passnet.graph.canonical,"
        " passnet.score.suite, passnet.bench.scores, passnet.bench.run, passnet.bench.candidates\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
