"""`passnet pass check`: what it prints of matches and misses, and where the code of passes runs."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passnet.cli import main
from tests.bench.runs import write_small_suite
from tests.judge.folders import GOOD, write_passes


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two graphs of `add_relu`, where the pass of these tests matches, and one of `mul_relu`."""
    return write_small_suite(tmp_path / "small.parquet", 2)


def check(folder: Path, suite: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["pass", "check", str(folder), "--suite", str(suite), *words])


def test_matches_are_counted_and_misses_explained(suite: Path, tmp_path: Path) -> None:
    folder = write_passes(tmp_path / "passes", GOOD)
    result = check(folder, suite)
    assert result.exit_code == 0, result.stderr
    first, second, miss, total = result.stdout.splitlines()
    assert total == "passes match on 2 of 3 graphs"
    assert first == "add_relu-0: Fuse matches once"
    assert second == "add_relu-1: Fuse matches once"
    assert miss.startswith("mul_relu-0: no match; Fuse: ") and " of 2 calls agree" in miss
    assert "expected operator.add, found operator.mul" in miss
    records = [json.loads(line) for line in check(folder, suite, "--json").stdout.splitlines()]
    assert [record["num_matches"] for record in records] == [1, 1, 0]
    assert records[2]["task"] == "mul_relu" and records[2]["graph"] == "mul_relu-0"
    assert records[2]["pass"] == "Fuse" and records[0]["miss"] is None
    assert "found operator.mul" in records[2]["miss"]


def test_a_baseline_has_no_passes(suite: Path) -> None:
    result = check(Path("eager@direct"), suite)
    assert result.exit_code == 2
    assert "eager@direct: a baseline, which has no passes; give a pass folder" in result.stderr


@pytest.mark.slow
def test_the_code_of_passes_runs_in_no_process_of_ours(suite: Path, tmp_path: Path) -> None:
    """A folder that ends its process, that says which it is, and that kills its parent."""
    marker = tmp_path / "pid"
    for line in (
        f"open({str(marker)!r}, 'a').write(str(os.getpid()))",
        "os._exit(3)",
        "os.kill(os.getppid(), 9)",
    ):
        folder = write_passes(tmp_path / "passes", f"import os\n{line}\n" + GOOD)
        result = check(folder, suite, "--task", "mul_relu", "--sandbox", "none")
        assert result.exit_code in (0, 1), result.stderr
        assert "matches once" not in result.stdout
    assert marker.exists() and marker.read_text() != str(os.getpid())


def test_a_sandbox_keeps_the_code_of_passes_from_writing_outside(
    suite: Path, tmp_path: Path
) -> None:
    from passnet.judge.processes.sandbox import find_sandbox

    if find_sandbox().name == "none":
        pytest.skip("nothing on this machine confines a process")
    marker = Path(__file__).with_name("written")
    folder = write_passes(tmp_path / "passes", f"open({str(marker)!r}, 'w')\n" + GOOD)
    result = check(folder, suite, "--task", "add_relu")
    assert not marker.exists()
    assert result.exit_code == 1 and "Read-only file system" in result.stdout


def test_a_folder_that_cannot_be_loaded_is_an_error_of_its_task_alone(
    suite: Path, tmp_path: Path
) -> None:
    write_passes(tmp_path / "passes" / "add_relu", "raise ValueError('not today')\n" + GOOD)
    write_passes(tmp_path / "passes" / "mul_relu", GOOD)
    result = check(tmp_path / "passes", suite)
    assert result.exit_code == 1, result.stderr
    assert "passes: cannot be loaded or applied for add_relu; see above" in result.stderr
    lines = result.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["add_relu-0", "mul_relu-0"]
    assert "not today" in lines[0] and "no match" in lines[1]


def test_what_the_machine_lacks_is_no_fault_of_a_folder(suite: Path, tmp_path: Path) -> None:
    lacking = "import errno, os\nraise OSError(errno.EMFILE, os.strerror(errno.EMFILE))\n"
    write_passes(tmp_path / "passes" / "add_relu", lacking + GOOD)
    result = check(tmp_path / "passes", suite)
    assert result.exit_code == 1 and "cannot be loaded" not in result.stderr
    assert "add_relu-0: not checked, as this machine lacks something" in result.stderr


def test_with_rules_the_findings_are_printed_and_nothing_runs(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    source = f"open({str(marker)!r}, 'w')\n" + GOOD.replace("def pattern", "import gc\ndef pattern")
    folder = write_passes(tmp_path / "passes", source + "\ngetattr(gc, 'stcejbo'[::-1])\n")
    command = ["pass", "check", str(folder), "--rules", "strict"]
    result = CliRunner().invoke(main, [*command, "--json"])
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)  # one line
    names = {finding["name"] for finding in record["findings"]}
    assert {"evasion", "persistence"} <= names and record["failure"] is None
    assert not marker.exists()
    lines = CliRunner().invoke(main, command).stdout.splitlines()
    assert any("flag evasion: getattr with a computed name" in line for line in lines)


def test_a_folder_that_cannot_be_inspected_is_an_error(tmp_path: Path) -> None:
    folder = write_passes(tmp_path / "passes", "def (:\n")
    result = CliRunner().invoke(main, ["pass", "check", str(folder), "--rules", "open"])
    assert result.exit_code == 1 and "Fuse.py" in result.stderr


def test_what_the_machine_lacks_for_kernels_is_said_once(suite: Path, tmp_path: Path) -> None:
    folder = write_passes(tmp_path / "passes", "import triton.language as tl\n" + GOOD)
    try:
        import triton  # noqa: F401 # pyrefly: ignore
    except ImportError:
        pass
    else:
        pytest.skip("Triton is installed")
    result = check(folder, suite)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "add_relu-0: PassError: loading pass Fuse: this needs Triton, which is not installed: "
        "pip install 'passnet[cuda]'"
    ]
    assert len(check(folder, suite, "--json").stdout.splitlines()) == 3
