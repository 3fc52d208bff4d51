"""`passnet library`: what it prints, what it refuses, and that lists need no torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passnet.cli import main
from passnet.passes.library.entries import PassEntry
from passnet.passes.library.store import PassLibrary
from tests.optimizer.libraries import HERE, folder, outcome, tanh_mul


@pytest.fixture
def library(tmp_path: Path) -> PassLibrary:
    made = PassLibrary(tmp_path / "library")
    made.add(tanh_mul(), "compiler", HERE, folder(), outcome())
    made.add(tanh_mul((4, 9)), "search", HERE, folder(), outcome(speedup_low=0.9))
    return made


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["library", *map(str, words)])


def winner(library: PassLibrary) -> PassEntry:
    found = library.find(tanh_mul(), HERE)
    assert found is not None
    return found


def test_passes_that_win_are_listed_and_the_others_if_asked_for(library: PassLibrary) -> None:
    entry = winner(library)
    [record] = json.loads(run("list", library.folder, "--json").stdout)
    assert record["digest"] == entry.digest and record["saved_ms"] == pytest.approx(
        0.4737, abs=1e-4
    )
    assert record["hardware"] == {"device": "cpu", "name": "a processor", "num_threads": 1,
                                  "torch": "2.13"}  # fmt: skip
    assert len(json.loads(run("list", library.folder, "--json", "--all").stdout)) == 2
    text = run("list", library.folder).stdout
    assert entry.digest[:12] in text and "1.90 – 2.10" in text and "tanh mul" in text


def test_an_entry_is_shown_with_its_ops_and_files(library: PassLibrary) -> None:
    entry = winner(library)
    text = run("show", library.folder, entry.digest[:8]).stdout
    assert "torch.tanh(a)" in text and "speedup 1.90 – 2.10" in text and "Fuse.py: " in text
    record = json.loads(run("show", library.folder, entry.digest, "--json").stdout)
    assert record["files"] == folder() and record["program"] == entry.program
    missing = run("show", library.folder, "zz")
    assert missing.exit_code == 2
    assert "0 of 2 entries have a digest that begins with 'zz'" in missing.stderr


def test_the_shipped_library_has_a_name_and_its_records_are_whole(tmp_path: Path) -> None:
    records = json.loads(run("list", "shipped", "--json").stdout)
    assert len(records) >= 10
    for record in records:
        assert record["status"] == "wins" and record["saved_ms"] > 0 and record["hardware"]["name"]
    entry = records[0]["digest"]
    shown = json.loads(run("show", "shipped", entry, "--json").stdout)
    assert shown["files"] and shown["program"]
    merged = json.loads(run("merge", tmp_path / "own", "shipped", "--json").stdout)
    assert merged == {"shipped": len(records)}
    assert not [each for each in PassLibrary(tmp_path / "own").entries() if each.origin == "here"]
    assert run("remove", "shipped", entry).exit_code == 2  # it is no folder of yours


def test_passes_go_from_library_to_library(library: PassLibrary, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "1 passes are in" in run("export", library.folder, "--out", out).stdout
    assert run("export", library.folder, "--out", out).exit_code == 2
    merged = run("merge", tmp_path / "new", out, "--json")
    assert json.loads(merged.stdout) == {str(out): 1}
    [entry] = PassLibrary(tmp_path / "new").entries()
    assert entry.origin == "elsewhere"
    assert "(elsewhere)" in "".join(run("list", tmp_path / "new").stdout.split())
    removed = run("remove", tmp_path / "new", entry.digest[:6])
    assert removed.stdout == f"removed {entry.digest[:12]}\n"
    nothing = run("export", tmp_path / "new", "--out", tmp_path / "none")
    assert nothing.exit_code == 2 and "no pass in it wins" in nothing.stderr


def test_what_is_no_library_ends_in_one_sentence(tmp_path: Path) -> None:
    for words in (["list"], ["verify"], ["export", "--out", str(tmp_path / "out")]):
        result = run(words[0], tmp_path / "nothing", *words[1:])
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1 and "no library of passes" in result.stderr


@pytest.mark.slow
def test_a_wrong_pass_fails_the_command(library: PassLibrary) -> None:
    entry = library.add(tanh_mul(), "llm", HERE, folder("a + b"), outcome())
    result = run("verify", library.folder, entry.digest, "--seconds", "0.05")
    assert result.exit_code == 1
    assert f"{entry.digest[:12]}: wins before, wrong here" in result.stdout
    assert "0 of 1 passes are used here" in result.stdout
    assert f"{entry.digest[:12]} won before, and are wrong here" in result.stderr


def test_lists_need_no_torch(library: PassLibrary) -> None:
    script = (
        "import sys\nfrom passnet.cli import main\n"
        f"main(['library', 'list', {str(library.folder)!r}], standalone_mode=False)\n"
        f"main(['library', 'show', {str(library.folder)!r}, {winner(library).digest!r}],"
        " standalone_mode=False)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
