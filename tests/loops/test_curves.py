import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet_loops.checkpoint import INFO_FILE, TrainInfo
from passnet_loops.curves import draw_training, learning_curve
from passnet_loops.settings import SftSettings
from passnet_loops.sft import CURVE_FILE, curve_callback
from passnet_loops.summaries import SystemSummary


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    folders = []
    for name, stage, num in (("small", "sft", 500), ("large", "sft", 4000), ("rl", "rl", 4000)):
        folder = tmp_path / name
        folder.mkdir()
        info = TrainInfo(SCHEMA_VERSION, stage, 1, num, num, (), {}, SftSettings(), 1.0)
        write_json(folder / INFO_FILE, info)
        rows = [{"step": n, "loss": 1 / n, "eval_loss": 2 / n} for n in (10, 20)]
        (folder / CURVE_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
        folders.append(folder)
    return folders


@dataclass
class FakeClock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def figures(*names: str) -> list[SystemSummary]:
    return [
        SystemSummary(name, 10, 10, n / 10, n / 20, n / 5, None, None, 0)
        for n, name in enumerate(names, 1)
    ]


def test_a_run_that_goes_on_counts_the_time_of_those_before_it(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    path = tmp_path / CURVE_FILE
    path.write_text('{"step": 1, "seconds": 100.0}\n{"step": 2, "sec')
    state = SimpleNamespace(global_step=2)
    clock = FakeClock()
    curve = curve_callback(path, True, clock)
    clock.seconds = 20.0
    curve.on_log(None, state, None, {"loss": 0.5, "words": "not a number"})
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"step": 1, "seconds": 100.0}
    assert second == {"step": 2, "seconds": 120.0, "loss": 0.5} and curve.seconds == 120
    assert curve_callback(path, False, clock).seconds == 0, "one that begins anew"
    assert not path.exists()


def test_a_learning_curve_is_of_llms_that_differ_in_structures(runs: list[Path]) -> None:
    systems = figures("teacher", "small", "large", "rl")
    points = learning_curve(runs, systems)
    assert [(number, each.system) for number, each in points] == [(500, "small"), (4000, "large")]
    assert learning_curve(runs[1:], systems) == []


def test_seeds_are_one_point_of_a_learning_curve(runs: list[Path], tmp_path: Path) -> None:
    info = read_json(runs[1] / INFO_FILE, TrainInfo)
    other = tmp_path / "large-1"
    other.mkdir()
    write_json(other / INFO_FILE, replace(info, settings=replace(info.settings, seed=1)))
    systems = figures("small", "large", "large-1", "large, 2 seeds")
    points = learning_curve([runs[0], runs[1], other], systems)
    assert [(n, each.system) for n, each in points] == [(500, "small"), (4000, "large, 2 seeds")]


def test_the_figure_names_what_it_shows(runs: list[Path], tmp_path: Path) -> None:
    draw_training(runs, figures("teacher", "small", "large", "rl"), tmp_path / "all.svg")
    draw_training(runs[:1], figures("small"), tmp_path / "one.svg")
    whole, one = ((tmp_path / name).read_text() for name in ("all.svg", "one.svg"))
    for label in ("structures learned from", "correct, %", "loss of a word"):
        assert f"<!-- {label} -->" in whole
    assert "structures learned from" not in one
