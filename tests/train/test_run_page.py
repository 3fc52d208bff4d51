"""The page of a training says what its records hold, and is on the site."""

from dataclasses import replace
from pathlib import Path

import pytest

from passnet.core.records.serialise import LineWriter
from passnet.errors import InputError, TrainingStoppedError
from passnet.pages.figures.study_page import read_study
from passnet.train.rewards.monitors import MONITORS_FILE, MonitorLimits, MonitorRecord, Reading
from passnet.train.rewards.sample_log import SampleLog
from passnet.train.rewards.samples import Sample
from passnet_site.pages.build import build_site, read_parts
from passnet_site.pages.training_page import training_study, write_run_page

GOOD = Sample(0, 0, "a", 1.0, ("ok",), True, speedup_low=1.5, num_tokens=50)
CHEAT = replace(GOOD, reward=0.0, statuses=("cheat",), is_correct=False, cheats=("late_write",))


def test_a_training_that_monitors_stop_leaves_a_page_that_says_why(tmp_path: Path) -> None:
    run = tmp_path / "rl"
    with (
        pytest.raises(TrainingStoppedError, match="cheat"),
        SampleLog(run, MonitorLimits(window=8, min_samples=4), write_run_page) as log,
    ):
        for number in range(8):
            answer = CHEAT if number > 3 else GOOD
            log.put(replace(answer, number=number, step=number // 4, group=str(number)))
        log.check(1, {"entropy": 0.5})
    page = read_study(run).page
    assert page.finding == "8 answers, 50% of them correct, 4 cheats; stopped by cheats."
    steps, last, readings = page.tables
    assert steps.rows == [
        ("0", "4", "1.000", "100%", "0%", "0%", "0"),
        ("1", "4", "0.000", "0%", "100%", "0%", "0"),
    ]
    assert ("cheats", "50% BEYOND", "≤ 10%", "4 of 8, 4 late_write") in last.rows
    assert readings.rows[0][:2] == ("1", "0.5")
    assert any("late_write 4" in each for each in page.paragraphs)

    build_site(read_parts([run], None, [], None), tmp_path / "site", "Training")
    [written] = [p for p in (tmp_path / "site/studies").glob("*.html") if p.name != "index.html"]
    assert "stopped by cheats" in written.read_text(encoding="utf-8")


def test_a_page_of_a_training_that_goes_on_is_made_anew(tmp_path: Path) -> None:
    with SampleLog(tmp_path, write_page=write_run_page) as log:
        log.put(GOOD)
    with SampleLog(tmp_path, write_page=write_run_page) as log:
        log.put(replace(GOOD, number=1, step=1, reward=None, statuses=("unstable",)))
    page = read_study(tmp_path).page
    assert page.finding.startswith("2 answers, ") and page.tables[0].rows[1][2] == "–"
    assert "Not judged, and without effect on the LLM: 1." in page.paragraphs


def test_readings_stand_under_their_monitor_whichever_there_are(tmp_path: Path) -> None:
    with SampleLog(tmp_path) as log:
        log.put(GOOD)
    readings = (
        Reading("unknown", 0.5, None, False, ""),
        Reading("of_another_version", 1, 1, True, ""),
    )
    with LineWriter(tmp_path / MONITORS_FILE) as writer:
        writer.write(MonitorRecord(0, ()))
        writer.write(MonitorRecord(1, readings))
    build_site(read_parts([tmp_path], None, [], None), tmp_path / "site", "Training")
    [_, _, table] = training_study(tmp_path).page.tables
    assert {*table.rows[0][1:]} == {"–"}
    assert dict(zip(table.heads, table.rows[1], strict=True))["unknown"] == "0.5"


def test_many_steps_are_thinned_and_the_last_is_shown(tmp_path: Path) -> None:
    with SampleLog(tmp_path, write_page=write_run_page) as log:
        for number in range(95):
            log.put(replace(GOOD, number=number, step=number))
    rows = read_study(tmp_path).page.tables[0].rows
    assert len(rows) <= 41 and rows[0][0] == "0" and rows[-1][0] == "94"


def test_without_answers_there_is_no_page(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").touch()
    with pytest.raises(InputError, match="holds no answers; train for a step first"):
        write_run_page(tmp_path)
