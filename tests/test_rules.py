"""Rules of the tests themselves: nothing of ours is patched, no wall time is asserted, and every
slow test has a written reason.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
REASONS = tomllib.loads((TESTS / "slow.toml").read_text(encoding="utf-8"))
OWN = (
    *("passnet", "passnet_audit", "passnet_exchange", "passnet_loops", "passnet_service"),
    *("benchmarks", "recipes", "integrations"),
)
PATCHES = ("setattr", "setitem", "delattr", "patch", "object")
CLOCKS = ("perf_counter", "monotonic", "process_time")


def test_files() -> list[Path]:
    return sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))


test_files.__test__ = False  # type: ignore[attr-defined]


def own_names(tree: ast.Module) -> set[str]:
    """Return the names that a file imports from packages of ours."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OWN:
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def own_patches(source: str) -> Iterator[str]:
    """Yield the calls of `setattr` or `patch` that replace something of ours."""
    tree = ast.parse(source)
    names = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            if ast.unparse(node.func).split(".")[-1] not in PATCHES:
                continue
            target = ast.unparse(node.args[0])
            if target.split(".")[0] in names or re.match(r"f?['\"](passnet|recipes)", target):
                yield ast.unparse(node)


def timed_asserts(source: str) -> Iterator[str]:
    """Yield the asserts that bound the time since some clock was read from above."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assert):
            continue
        compares = (part for part in ast.walk(node.test) if isinstance(part, ast.Compare))
        for compare in compares:
            left = ast.unparse(compare.left)
            bounds_above = isinstance(compare.ops[0], (ast.Lt, ast.LtE))
            if bounds_above and any(f"{clock}() -" in left for clock in CLOCKS):
                yield ast.unparse(node)


@pytest.mark.parametrize("path", test_files(), ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_patches_nothing_of_ours_and_asserts_no_wall_time(path: Path) -> None:
    source, name = path.read_text(encoding="utf-8"), f"tests/{path.relative_to(TESTS).as_posix()}"
    assert list(own_patches(source)) == []
    assert name in REASONS["hangs"] or list(timed_asserts(source)) == []


def test_every_slow_test_has_a_written_reason() -> None:
    marked = {
        f"tests/{path.relative_to(TESTS).as_posix()}"
        for path in test_files()
        if "mark.slow" in path.read_text(encoding="utf-8") and path.name != "conftest.py"
    }
    assert marked == set(REASONS["marked"])
    for name in [*REASONS["listed"], *REASONS["sampled"]]:
        assert (TESTS.parent / name.split("::")[0]).is_file(), f"{name} is not there any more"


def test_a_patch_and_a_timed_assert_are_found() -> None:
    source = (
        "from passnet.judge import judge\n"
        "def test(monkeypatch):\n"
        "    monkeypatch.setattr(judge, 'LIMIT', 1)\n"
        "    monkeypatch.setattr('passnet.errors.X', 1)\n"
        "    with patch.object(judge.Judge, 'run'), patch('passnet.errors.X'):\n"
        "        pass\n"
        "    assert time.monotonic() - start < 3\n"
    )
    assert len(list(own_patches(source))) == 4
    assert len(list(timed_asserts(source))) == 1
