"""Requests of the verifiers package to the service, which need no verifiers."""

import asyncio
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.bench.runs import write_small_suite
from tests.train.service.running import kernel
from tests.train.service.scripted_judge import RIGHT, ScriptedJudge
from tests.train.service.served_app import in_background, service

FILE = Path(__file__).parents[2] / "integrations/verifiers/passnet_passes/asked.py"

pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture
def asked():
    spec = spec_from_file_location("passnet_passes_asked", FILE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_suite_is_read_once(asked, tmp_path):
    path = write_small_suite(tmp_path / "small.parquet", 1)
    tasks = asked.suite_tasks(str(path))
    path.unlink()
    assert set(tasks) == {"add_relu", "mul_relu"} and asked.suite_tasks(str(path)) is tasks


def test_a_reward_is_not_answered_with_the_measurement_of_an_evaluation(
    asked, tmp_path, monkeypatch
):
    task = asked.suite_tasks(str(write_small_suite(tmp_path / "small.parquet", 1)))["add_relu"]
    lows = (1.5, 1.0)
    judge = ScriptedJudge(*(replace(RIGHT, speedup=low, speedup_low=low) for low in lows))
    with in_background(service(tmp_path, judge)) as address:
        monkeypatch.setenv("PASSNET_JUDGE_URL", address.url)
        monkeypatch.setenv("PASSNET_JUDGE_TOKEN", address.token)
        measured = [
            asyncio.run(asked.judged(task, kernel(), True, 30.0, purpose))[0].speedup_low
            for purpose in ("evaluation", "reward", "evaluation")
        ]
    assert measured == [1.5, 1.0, 1.5]


def test_an_evaluation_ends_before_its_client_and_a_repeat_waits_for_the_same_judgement(
    asked, tmp_path, monkeypatch
):
    task = asked.suite_tasks(str(write_small_suite(tmp_path / "small.parquet", 1)))["add_relu"]
    judge = ScriptedJudge(seconds=2.0)
    with in_background(service(tmp_path, judge)) as address:
        monkeypatch.setenv("PASSNET_JUDGE_URL", address.url)
        monkeypatch.setenv("PASSNET_JUDGE_TOKEN", address.token)
        late = asyncio.run(asked.evaluated(task, kernel(), True, 0.5))
        trials = asyncio.run(asked.evaluated(task, kernel(), True, 900.0))
    assert late.startswith("error: not judged, no answer in 0.5 s: it was still being judged")
    assert [trial.status for trial in trials] == ["ok"] and len(judge.texts) == 1


def test_no_evaluation_takes_the_600_s_after_which_its_client_repeats_it(asked):
    assert asked.MAX_EVALUATION_S < 600
