"""The taskset of verifiers and the reward function of verl, with the real judge behind them."""

import asyncio
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from passnet.agent.trajectories.training_data import folder_text
from passnet.data.capture.mismatched_wheels import import_torchvision
from tests.agent.byte_tokenizer import byte_tokenizer
from tests.bench.runs import write_small_suite
from tests.train.service.running import kernel, serving

FOLDER = Path(__file__).parents[2] / "integrations"
WRONG = kernel(body="\ndef replacement(x, y):\n    return x - y\n")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service")]


@pytest.fixture
def suite(tmp_path):
    return str(write_small_suite(tmp_path / "small.parquet", 1))


@pytest.fixture
def service(tmp_path, monkeypatch):
    with serving(tmp_path / "out", "--call", "direct") as (_, address):
        monkeypatch.setenv("PASSNET_JUDGE_URL", address.url)
        monkeypatch.setenv("PASSNET_JUDGE_TOKEN", address.token)
        yield address


def test_verl_gets_a_float_for_each_answer(service, suite, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER / "verl")
    from passnet_reward import compute_score

    async def score(text):
        return await compute_score("passnet", text, "add_relu", {"suite": suite, "num_turns": 1})

    right, wrong, none = (
        asyncio.run(score(text)) for text in (folder_text(kernel()), folder_text(WRONG), "no")
    )
    assert right["acc"] == 1.0 and right["score"] > 0
    assert wrong == none == {"score": 0.0, "acc": 0.0, "cheat": 0.0}


def test_the_reward_manager_of_verl_takes_three_batches(service, suite, monkeypatch):
    with suppress(ImportError):
        import_torchvision()  # transformers imports it where it is there
    verl = pytest.importorskip("verl", reason="verl is not installed (see integrations/verl)")
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

    monkeypatch.syspath_prepend(FOLDER / "verl")
    monkeypatch.setenv("PASSNET_TRAINING_ANSWERS", "8")
    from passnet_reward import compute_score

    tokenizer = byte_tokenizer("qwen3.jinja")

    def batch(text):
        tokens = torch.tensor([tokenizer.encode(text)])
        return verl.DataProto.from_dict(
            {"responses": tokens, "attention_mask": torch.ones_like(tokens)},
            {
                "data_source": np.array(["passnet"], object),
                "reward_model": np.array([{"ground_truth": "add_relu"}], object),
                "extra_info": np.array([{"suite": suite}], object),
            },
        )

    manager = NaiveRewardManager(None, tokenizer, compute_score)
    scored = [
        manager.loop.run_until_complete(manager.run_single(batch(folder_text(files))))
        for files in (WRONG, kernel(), {**WRONG, "more.py": "x = 1\n"})
    ]
    rewards = [each["reward_score"] for each in scored]
    assert rewards[1] >= 0.2 * 7 / 8  # the folder's kernel is slower than eager torch
    assert [each["reward_extra_info"]["acc"] for each in scored] == [0, 1, 0]
    assert rewards[0] == 0.2 and rewards[2] == pytest.approx(0.2 * 6 / 8)  # it decays


def test_verifiers_scores_what_the_tools_wrote(service, suite, monkeypatch):
    vf = pytest.importorskip(
        "verifiers.v1", reason="verifiers is not installed (see integrations/verifiers)"
    )
    monkeypatch.syspath_prepend(FOLDER / "verifiers")
    from passnet_passes.tools import PassTools, PassToolsConfig
    from verifiers.v1.utils.loaders import load_taskset, taskset_class

    config = taskset_class("passnet-passes").__orig_bases__[0].__args__[1]
    untimed = {"tools": {"is_timed": False}}
    taskset = load_taskset(config(id="passnet-passes", suite=suite, task=untimed))
    tasks = list(taskset)
    assert [task.data.task for task in tasks] == ["add_relu", "mul_relu"]
    assert "in_0 + in_1" in tasks[0].data.prompt and "with the tools" in tasks[0].data.prompt
    assert isinstance(tasks[0], vf.Task) and len(tasks[0].toolsets(tasks[0].config)) == 1

    async def attempt(files):
        tools = PassTools(PassToolsConfig(is_timed=False))
        await tools.setup_task(tasks[0].data)
        for name, text in files.items():
            assert await tools.create(name, text) == f"{name} is written"
        assert (await tools.replace("Fuse.py", "no such text", "")).startswith("error: ")
        said = await tools.evaluate()
        trace = vf.Trace(
            task=vf.TraceTask(type="PassTask", data=tasks[0].data),
            agent=vf.AgentInfo(config=vf.AgentConfig()),
            state=tools.state,
        )
        await tasks[0].score(trace)
        return said, trace

    said, trace = asyncio.run(attempt(kernel()))
    assert "graph 0: ok" in said and trace.reward == 1.0 and trace.metrics["correct"] == 1.0
    _, trace = asyncio.run(attempt(WRONG))
    assert trace.reward == 0.0 and trace.info["statuses"] == ["ok"]
    monkeypatch.setenv("PASSNET_JUDGE_URL", "http://127.0.0.1:9")
    tasks[0].config.tools.timeout_s = 0.5
    with pytest.raises(Exception, match="no answer in 0.5 s"):
        asyncio.run(attempt_without_service(vf, tasks[0]))


async def attempt_without_service(vf, task):
    from passnet_passes.tools import PassState

    trace = vf.Trace(
        task=vf.TraceTask(type="PassTask", data=task.data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        state=PassState(files=kernel()),
    )
    await task.score(trace)


def test_the_package_of_verifiers_names_the_version_that_it_was_written_for():
    text = (FOLDER / "verifiers" / "pyproject.toml").read_text()
    assert '"verifiers==0.4.0"' in text
