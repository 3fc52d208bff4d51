"""`passnet library`: what it prints, what it refuses, and that lists need no torch."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passnet.cli import main
from passnet.core.hardware import this_hardware
from passnet.passes.library.entries import ENTRIES, PassEntry, winning
from passnet.passes.library.store import PassLibrary
from tests.optimizer.libraries import HERE, folder, outcome, tanh_mul
from tests.processes import wait_until


@pytest.fixture
def library(tmp_path: Path) -> PassLibrary:
    made = PassLibrary(tmp_path / "library")
    made.add(tanh_mul(), "compiler", HERE, folder(), outcome())
    made.add(tanh_mul((4, 9)), "search", HERE, folder(), outcome(speedup_low=0.9))
    return made


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["library", *map(str, words)])


def winner(library: PassLibrary) -> PassEntry:
    [found] = winning(library.entries(), HERE)
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
    assert f"`passnet library list {library.folder} --all` prints them" in missing.stderr


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
    assert run("export", "shipped", entry, "--out", tmp_path / "copy").exit_code == 0
    assert [each.digest for each in PassLibrary(tmp_path / "copy").entries()] == [entry]
    for words in (("remove", "shipped", entry), ("verify", "shipped")):  # it is no folder of yours
        refused = run(*words)
        assert refused.exit_code == 2 and "shipped: this library is only read" in refused.stderr
    missing = run("show", "shipped", "zz").stderr
    assert "`passnet library list shipped --all` prints them" in missing


def test_what_is_no_library_and_what_is_nothing_are_told_apart(
    library: PassLibrary, tmp_path: Path
) -> None:
    (tmp_path / "bench").mkdir()
    for words in (("list", tmp_path / "bench"), ("import", tmp_path / "bench", "--into", "new")):
        text = run(*words).stderr
        assert "bench: no library of passes" in text and "did you mean" not in text
    wrong = run("list", tmp_path / "libary").stderr
    assert (
        f"libary: no such folder, so no library of passes; did you mean {library.folder}?" in wrong
    )


def test_passes_go_from_library_to_library(library: PassLibrary, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "1 pass in" in run("export", library.folder, "--out", out).stdout
    assert run("export", library.folder, "--out", out).exit_code == 2
    merged = run("merge", tmp_path / "new", out, "--json")
    assert json.loads(merged.stdout) == {str(out): 1}
    [entry] = PassLibrary(tmp_path / "new").entries()
    assert entry.origin == "elsewhere"
    assert "(elsewhere)" in "".join(run("list", tmp_path / "new", "--wide").stdout.split())
    removed = run("remove", tmp_path / "new", entry.digest[:6])
    assert removed.stdout == f"removed {entry.digest[:12]}\n"
    nothing = run("export", tmp_path / "new", "--out", tmp_path / "none")
    assert nothing.exit_code == 2 and "no pass in it wins" in nothing.stderr


def test_what_is_no_library_ends_in_one_sentence(tmp_path: Path) -> None:
    for words in (["list"], ["verify"], ["export", "--out", str(tmp_path / "out")]):
        result = run(words[0], tmp_path / "nothing", *words[1:])
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1 and "no such folder" in result.stderr


def test_a_library_is_exported_as_a_repository_of_kernels(
    library: PassLibrary, tmp_path: Path
) -> None:
    others = PassLibrary(tmp_path / "others")
    others.add(tanh_mul((4, 7)), "llm", HERE, folder(), outcome())
    assert library.merge(others.folder) == 1, "which is no pass to publish"
    words = ["export", library.folder, "--out", tmp_path / "my-passes", "--layout", "kernels"]
    missing = run(*words)
    assert missing.exit_code == 2 and "needs --license, such as MIT" in missing.stderr
    result = run(*words, "--license", "MIT", "--json")
    assert json.loads(result.stdout) == {"exported": 1}
    metadata = tmp_path / "my-passes/build/torch-cpu/metadata.json"
    assert json.loads(metadata.read_text())["name"] == "my-passes"
    other = run("export", library.folder, "--out", tmp_path / "other", "--license", "MIT")
    assert other.exit_code == 2 and "are for --layout kernels" in other.stderr
    assert not (tmp_path / "other").exists()


def test_a_library_that_was_changed_is_not_imported(library: PassLibrary, tmp_path: Path) -> None:
    path = library.folder / ENTRIES / winner(library).digest / "folder"
    (path / "Fuse.py").write_text("import os")
    result = run("import", library.folder, "--into", tmp_path / "own")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert "Fuse.py" not in result.stdout and "so they were changed" in result.stderr
    assert not (tmp_path / "own").exists()


def test_passes_for_another_device_are_left_out(library: PassLibrary, tmp_path: Path) -> None:
    other = PassLibrary(tmp_path / "other")
    other.add(tanh_mul(), "llm", replace(HERE, device="cuda"), folder(), outcome())
    result = run("import", other.folder, "--into", tmp_path / "own")
    assert result.exit_code == 0
    assert result.stdout == "1 passes are for another --device than cpu\n"


@pytest.mark.slow
def test_an_import_judges_in_the_sandbox_and_goes_on_after_a_stop(tmp_path: Path) -> None:
    marker, others = tmp_path / "marker", PassLibrary(tmp_path / "others")
    mark = f"open({str(marker)!r}, 'w').close()\n"
    files = folder()
    marking = {**files, "Fuse.py": mark + files["Fuse.py"]}
    for each in (files, marking):
        others.add(tanh_mul(), "llm", HERE, each, outcome())
    out, own = tmp_path / "passes", PassLibrary(tmp_path / "own")
    words = ("--out", out, "--layout", "kernels", "--license", "MIT")
    assert run("export", others.folder, *words, "--all").exit_code == 0
    package = out / "build/torch-cpu/__init__.py"
    package.write_text(mark + package.read_text())
    [first] = [entry for entry in others.entries() if others.files(entry) == files]
    here = this_hardware(1)
    known = own.add(tanh_mul(), "llm", here, files, outcome())  # a stopped import had judged it
    assert known.code_hash == first.code_hash

    command = ("import", out, "--into", own.folder, "--seconds", "0.05", "--json")
    result = json.loads(run(*command).stdout)
    [judged] = result["passes"]
    assert result["num_known"] == 1 and judged["after"]["origin"] == "here"
    assert not marker.exists()
    assert own.entries() != [known] and known in own.entries()
    again = json.loads(run(*command).stdout)
    assert again == {"passes": [], "num_known": 2, "num_other_devices": 0}


@pytest.mark.slow
def test_a_killed_import_keeps_what_it_judged(tmp_path: Path) -> None:
    others, own = PassLibrary(tmp_path / "others"), PassLibrary(tmp_path / "own")
    for factor in range(3):
        others.add(tanh_mul(), "llm", HERE, folder(f"a.tanh() * b * {factor}.0"), outcome())
    words = ("import", others.folder, "--into", own.folder, "--seconds", "0.05", "--json")
    process = subprocess.Popen(
        [sys.executable, "-m", "passnet.cli", "library", *map(str, words)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_until(lambda: bool(own.entries()), "nothing was imported", 120)
    process.kill()
    process.wait()
    num_kept = len(own.entries())
    assert 1 <= num_kept < 3
    result = json.loads(run(*words).stdout)
    assert (len(result["passes"]), result["num_known"]) == (3 - num_kept, num_kept)


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
