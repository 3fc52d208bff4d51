"""The agent's tools as an environment of TRL; its trainer, the judge and a tiny llm together."""

import asyncio
import pickle
from dataclasses import replace
from shutil import rmtree

import pytest

from passnet.agent.trajectories.training_data import folder_text
from passnet.core.records.serialise import read_lines
from passnet.errors import InputError
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import make_suite
from passnet.train.rewards.batch_rewards import BatchReward, service_judge
from passnet.train.rewards.environment import TrlReward, chat_rows, environment_factory
from passnet.train.rewards.monitors import (
    MONITORS_FILE,
    MonitorLimits,
    MonitorRecord,
    read_monitors,
)
from passnet.train.rewards.sample_log import SampleLog
from passnet.train.rewards.samples import SAMPLES_FILE, Sample
from passnet.train.service.client import ServiceDesk
from passnet.train.service.submission import Judged, JudgeReport
from recipes.gpu.train import GpuRecipe, train
from tests.agent.byte_tokenizer import byte_tokenizer
from tests.judge.folders import small_graph
from tests.train.service.running import LIST, kernel, serving
from tests.train.service.scripted_judge import RIGHT, ScriptedJudge
from tests.train.service.served_app import in_background, service

TASKS = {"add_relu": make_suite("small", [small_graph()]).tasks[0]}
SETTINGS = RunSettings(JudgeSettings(rules="open"))


def environment(address=None):
    made = environment_factory(TASKS, ServiceDesk(address, SETTINGS, is_timed=False))()
    made.reset(task="add_relu", prompt="ignored")
    return made


def test_the_tools_of_a_rollout_work_on_a_folder_of_its_own():
    first, second = environment(), environment()
    assert first.create("Fuse.py", "x = 1\n") == "Fuse.py is written: 1 lines"
    assert "x = 1" in first.view("Fuse.py") and "is empty" in second.view()
    assert first.replace("Fuse.py", "x = 1", "x = 2") == "Fuse.py is changed"
    assert first.replace("Fuse.py", "x = 1", "").startswith("error: ")
    assert first.create("../up.py", "").startswith("error: ")
    assert first.submitted == {"Fuse.py": "x = 2\n"} and second.submitted == {}
    said = first.reset(task="add_relu", start=folder_text(kernel()))
    assert LIST in first.submitted
    assert said is not None and "is not empty at first: it holds `Fuse.py`" in said
    assert first.delete(LIST) == f"{LIST} is deleted"
    assert first.reset(task="add_relu") is None
    assert first.submitted == {}
    with pytest.raises(InputError, match="no suite here has"):
        first.reset(task="other")


def test_a_reward_is_no_measurement_that_chose_the_answer(tmp_path):
    lows = [1.2, 1.5, 1.1, 1.0]  # of one kernel: the second evaluation is lucky
    right = replace(RIGHT, graph="add_relu-0", speedup_high=2.0)
    judge = ScriptedJudge(*(replace(right, speedup=low, speedup_low=low) for low in lows))
    with in_background(service(tmp_path, judge)) as address:
        rollout = environment_factory(TASKS, ServiceDesk(address, SETTINGS))()
        rollout.reset(task="add_relu")
        for number in range(3):
            for name, text in kernel(number).items():
                rollout.create(name, text)
            rollout.evaluate()
        assert rollout.submitted == kernel(1)
        with SampleLog(tmp_path / "run") as log:
            batch = BatchReward(TASKS, service_judge(address), log)
            [reward] = asyncio.run(batch.rewards(["add_relu"], [rollout.submitted], 0, 1.0))
    assert reward == 1.0 and len(judge.texts) == 4


def test_rollouts_that_ask_for_their_own_rewards_are_one_group_of_their_row(tmp_path):
    asked = []

    async def ask(submissions):
        asked.extend(submissions)
        return [JudgeReport("id", "done", Judged((RIGHT,))) for _ in submissions]

    rows = [name for name in ("add_relu", "again", "add_relu") for _ in range(4)]
    tasks = {**TASKS, "again": replace(TASKS["add_relu"], name="again")}
    with SampleLog(tmp_path) as log:
        log.put(Sample(0, 6, "add_relu", 0.5))
        batch = BatchReward(tasks, ask, log)
        make = environment_factory(tasks, ServiceDesk(None, SETTINGS), batch)
        rollouts = [make() for _ in rows]
        for name, rollout in zip(rows, rollouts, strict=True):
            rollout.reset(task=name)
            rollout.create("a.py", "x = 1\n")

        async def rewarded():
            return await asyncio.gather(*(rollout.get_reward() for rollout in rollouts[::-1]))

        asyncio.run(rewarded())
        steps = sorted((each.step, each.group) for each in log.samples[1:])
        readings = read_monitors(log.samples, {}, MonitorLimits(min_samples=8))
    groups = [(7, "add_relu"), (8, "again"), (9, "add_relu")]
    assert steps == [group for group in groups for _ in range(4)]
    [equal] = [reading for reading in readings if reading.monitor == "equal_groups"]
    assert equal.value == 1.0 and equal.evidence == "3 of 3 groups"
    assert all(submission.repeat == 0 for submission in asked)


def test_what_an_asynchronous_trainer_sends_to_its_worker_can_be_pickled(tmp_path):
    with SampleLog(tmp_path) as log:
        batch = BatchReward(TASKS, service_judge(None), log)
        asyncio.run(batch.rewards(["add_relu"], [None], 0, 0.0))
        judge = ServiceDesk(None, SETTINGS)
        for each in (TrlReward(batch), environment_factory(TASKS, judge, batch)):
            pickle.loads(pickle.dumps(each))


@pytest.mark.slow
def test_rows_have_the_task_and_what_the_llm_is_told():
    [row] = chat_rows(TASKS, ServiceDesk(None, SETTINGS), 3)
    assert row["task"] == "add_relu"
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert "in_0 + in_1" in row["prompt"][1]["content"]


def tiny_llm():
    """A random llm with one token a byte, and the chat template of Qwen 3."""
    tokenizer = byte_tokenizer("qwen3.jinja")
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, head_dim=8, max_position_embeddings=32768,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return Qwen3ForCausalLM(config), tokenizer


RECIPE = GpuRecipe(
    about="three steps on a CPU",
    ran_on="CPU",
    trainer="grpo",
    model="random",
    arguments={
        "num_generations": 2, "per_device_train_batch_size": 2, "max_completion_length": 12,
        "max_tool_calling_iterations": 3, "logging_steps": 1, "learning_rate": 0.01, "beta": 0.0,
        "use_cpu": True, "bf16": False, "report_to": [], "save_strategy": "steps", "save_steps": 1,
    },
    stages=({"max_steps": 2}, {"max_steps": 1, "max_tool_calling_iterations": 5}),
)  # fmt: skip


@pytest.mark.slow
def test_a_tiny_llm_takes_three_steps_through_the_real_trainer_and_the_real_judge(tmp_path):
    pytest.importorskip("trl", reason="TRL is not installed (pip install trl)")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    llm, tokenizer = tiny_llm()
    say = [{"role": "user", "content": "Better the folder."}]
    wrong = kernel(body="\ndef replacement(x, y):\n    return x - y\n")
    starts = [kernel(), wrong, {"a.py": "x = 1\n"}]
    rows = datasets.Dataset.from_list(
        [{"task": "add_relu", "prompt": say, "start": folder_text(files)} for files in starts]
    )
    weights = [each.detach().clone() for each in llm.parameters()]
    turns = []

    def rows_of(number):
        turns.append(number)
        return rows

    with serving(tmp_path / "judge") as (_, address):
        judge = ServiceDesk(address, SETTINGS, is_timed=False)
        assert_tools_reach_the_judge(address)
        ask = service_judge(replace(address, timeout_s=120))
        with SampleLog(tmp_path / "run", MonitorLimits(min_samples=100)) as log:
            batch = BatchReward(TASKS, ask, log, is_timed=False)
            parts = (tmp_path / "run", llm, rows_of, TASKS, judge, batch)
            trainer = train(RECIPE, *parts, processing_class=tokenizer)
            assert trainer.state.global_step == 1 and turns == [3, 5]
            rmtree(tmp_path / "run" / "stage-1" / "checkpoint-1")  # as after a kill before it
            again = train(RECIPE, *parts, processing_class=tokenizer)
            assert again.state.global_step == 1 and turns == [3, 5, 5]
            train(RECIPE, *parts, processing_class=tokenizer)  # nothing is left to do
    samples = list(read_lines(tmp_path / "run" / SAMPLES_FILE, Sample))
    assert [each.step for each in samples] == [0, 0, 1, 1, 0, 0, 0, 0]
    assert {each.statuses for each in samples} == {
        ("ok",), ("compile_error",),
    }  # fmt: skip
    assert {each.is_correct for each in samples} == {True, False}
    assert all(each.reward is not None and each.fault is None for each in samples)
    records = list(read_lines(tmp_path / "run" / MONITORS_FILE, MonitorRecord))
    read = {each.monitor: each.value for each in records[1].readings}
    assert read["least_entropy"] > 1 and read["equal_groups"] == 1
    # All answers of a group keep the same folder, earn the same, and teach nothing.
    pairs = zip(llm.parameters(), weights, strict=True)
    assert all(bool((new == old).all()) for new, old in pairs)


def assert_tools_reach_the_judge(address):
    rollout = environment(address)
    for name, text in kernel().items():
        rollout.create(name, text)
    assert rollout.check_match() == "1 of 1 graphs have a match\ngraph 0: Fuse matches once"
    assert "1 of 1 graphs correct" in rollout.evaluate()
    rollout.create("Fuse.py", "def (")
    assert "compile_error" in rollout.evaluate()
    assert rollout.submitted == kernel()
    assert rollout.submit().startswith("submitted: the state of evaluation 0")


@pytest.mark.slow
def test_every_tool_has_a_schema_that_transformers_reads():
    pytest.importorskip("trl", reason="TRL is not installed (pip install trl)")
    from transformers.utils import get_json_schema

    rollout = environment()
    names = [name for name in dir(type(rollout)) if not name.startswith("_")]
    tools = [name for name in names if name not in ("reset", "submitted")]
    assert tools == [
        "check_match", "create", "delete", "evaluate", "replace", "show_graph", "submit", "view",
    ]  # fmt: skip
    for name in tools:
        schema = get_json_schema(getattr(rollout, name))["function"]
        assert schema["name"] == name and len(schema["description"]) > 20
