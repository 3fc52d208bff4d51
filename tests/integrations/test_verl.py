"""The reward function of verl, with a scripted judge behind the service."""

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.agent.trajectories.training_data import folder_text
from passnet.errors import InputError
from passnet.train.service.submission import Judged
from tests.bench.runs import write_small_suite
from tests.train.service.running import kernel
from tests.train.service.scripted_judge import RIGHT, ScriptedJudge
from tests.train.service.served_app import in_background, service

FOLDER = Path(__file__).parents[2] / "integrations" / "verl"
WRONG = replace(RIGHT, status="wrong_shape", speedup=None, speedup_low=None)

pytestmark = pytest.mark.xdist_group("service")


@contextmanager
def scoring(tmp_path, monkeypatch, *script):
    """A function that scores a text as verl does."""
    monkeypatch.syspath_prepend(FOLDER)
    from passnet_reward import compute_score

    small = str(write_small_suite(tmp_path / "small.parquet", 1))
    with in_background(service(tmp_path, ScriptedJudge(*script))) as address:
        monkeypatch.setenv("PASSNET_JUDGE_URL", address.url)
        monkeypatch.setenv("PASSNET_JUDGE_TOKEN", address.token)

        def score(text, suite=small, task="add_relu"):
            return asyncio.run(compute_score("passnet", text, task, {"suite": suite}))

        yield score


def test_staged_credit_decays_with_each_answer_a_repeated_and_an_unreadable_one_included(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PASSNET_TRAINING_ANSWERS", "4")
    with scoring(tmp_path, monkeypatch, WRONG) as score:
        texts = [folder_text(kernel()), "no folder", folder_text(kernel()), folder_text(kernel())]
        scores = [score(text)["score"] for text in texts]
    assert scores == pytest.approx([0.1, 0.0, 0.1 * 2 / 4, 0.1 * 1 / 4])


def test_a_benchmark_is_refused_and_an_answer_is_correct_on_all_graphs_or_not(
    tmp_path, monkeypatch
):
    def judged(*trials):
        return Judged(tuple(replace(trial, smallest_t=-6) for trial in trials))

    half, whole = judged(RIGHT, WRONG), judged(RIGHT, RIGHT)
    with scoring(tmp_path, monkeypatch, half, whole) as score:
        scored = [score(folder_text(kernel(number))) for number in range(2)]
        assert [each["acc"] for each in scored] == [0.0, 1.0]
        with pytest.raises(InputError, match="a benchmark is not for training"):
            score(folder_text(kernel()), "passbench-v1-single-small")
