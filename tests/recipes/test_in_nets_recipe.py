"""The study of passes in nets: its intervals, its table, and shipped passes put together."""

import json
from pathlib import Path

import pytest

from passnet.bench.in_nets import InNet, PassesInNets
from passnet.passes.folder import LIST_FILE, inspect_folder
from recipes.in_nets import _write_together, table_rows, wilson


def test_the_interval_of_a_share() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(5, 10)
    assert (low, high) == (pytest.approx(0.237, abs=1e-3), pytest.approx(0.763, abs=1e-3))
    assert wilson(10, 10)[1] == pytest.approx(1.0)


def test_a_win_counts_where_the_whole_interval_is_above_one() -> None:
    def place(task: float, low: float, high: float) -> InNet:
        middle = (low + high) / 2
        return InNet("t", "n", "ok", 1, task, 0.1, 1.05, middle, low, high, 1.0)

    places = (place(1.5, 1.01, 1.03), place(1.2, 0.97, 1.02), place(1.1, 0.9, 0.95),
              place(0.8, 1.01, 1.02), InNet("t", "m", "timeout", 0))  # fmt: skip
    [row] = table_rows([PassesInNets("hash", places, "mine")])
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:5] == ["mine", "5", "4", "3", "1"]  # places, timed, won on the task, in the net
    assert cells[6] == "1"


def test_folders_written_as_one_keep_their_own_modules(tmp_path: Path) -> None:
    names = ("pattern", "replacement_args", "replacement_func")
    functions = "".join(f"def {name}():\n    pass\n" for name in names)
    code = f"from pass_dir import sources_0\nTEXT = sources_0.TEXT\n{functions}"
    folders = [
        {LIST_FILE: json.dumps(["Fused0"]), "Fused0.py": code, "sources_0.py": f"TEXT = {n}\n"}
        for n in range(2)
    ]
    _write_together(folders, tmp_path / "both")
    assert json.loads((tmp_path / "both" / LIST_FILE).read_text()) == ["N0_Fused0", "N1_Fused0"]
    assert "import N1_sources_0 as sources_0" in (tmp_path / "both" / "N1_Fused0.py").read_text()
    assert inspect_folder(tmp_path / "both").unlisted == ()
