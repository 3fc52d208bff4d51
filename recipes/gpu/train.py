"""Train an llm by a recipe of this folder, through TRL's trainers.

    python recipes/gpu/train.py RECIPE --data DATA --out OUT [--suite SUITE] [--service URL]

DATA are chats of attempts to fine-tune on (`passnet agent export`); reinforcement needs none, as
prompts are the tasks of SUITE. Rewards come from `passnet judge serve` at URL, with the token in
the variable PASSNET_JUDGE_TOKEN. With several GPUs:

    accelerate launch --config_file ACCELERATE recipes/gpu/train.py RECIPE …
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import Task
from passnet.train.rewards.batch_rewards import BatchReward, service_judge
from passnet.train.rewards.environment import (
    TrlReward,
    chat_rows,
    environment_factory,
)
from passnet.train.rewards.sample_log import SampleLog, monitor_callback
from passnet.train.service.client import ServiceAddress, ServiceDesk
from passnet_site.pages.training_page import write_run_page

TrainerName = Literal["sft", "grpo", "async_grpo"]

CLASSES: dict[TrainerName, tuple[str, str, str]] = {
    "sft": ("trl", "SFTConfig", "SFTTrainer"),
    "grpo": ("trl", "GRPOConfig", "GRPOTrainer"),
    "async_grpo": ("trl.experimental.async_grpo", "AsyncGRPOConfig", "AsyncGRPOTrainer"),
}
"""Trainer -> its module, the class of its arguments, and its own class."""


@dataclass(frozen=True)
class GpuRecipe:
    """A training: an llm, a trainer, and its arguments.

    Args:
        about: its purpose.
        ran_on: the hardware that it ran on; "nothing" until it did.
        trainer: one of TRL's.
        model: the llm, by its name on a hub or its folder.
        arguments: of the trainer, by the names of their class.
        stages: the differences of each part of the training, in order.
        lora: arguments of LoRA; None trains all weights.
        accelerate: a configuration of accelerate for several GPUs, to be written to a file.
    """

    about: str
    ran_on: str
    trainer: TrainerName
    model: str
    arguments: dict[str, Any]
    stages: tuple[dict[str, Any], ...] = ({},)
    lora: dict[str, Any] | None = None
    accelerate: dict[str, Any] = field(default_factory=dict)


def read_recipe(path: Path) -> GpuRecipe:
    """Read the recipe in a file."""
    return msgspec.yaml.decode(path.read_bytes(), type=GpuRecipe)


def trainer_classes(name: TrainerName) -> tuple[type[Any], type[Any]]:
    """Return the class of a trainer's arguments, and its own class."""
    from importlib import import_module

    module, arguments, trainer = CLASSES[name]
    return getattr(import_module(module), arguments), getattr(import_module(module), trainer)


def train(
    recipe: GpuRecipe,
    out: Path,
    model: Any,
    rows: Any,
    tasks: Mapping[str, Task],
    judge: Any,
    batch: BatchReward | None,
    **more: Any,
) -> Any:
    """Return the trainer after all stages of a recipe.

    Args:
        recipe: the recipe.
        out: the folder of checkpoints, with a folder for each stage.
        model: the llm, or its name.
        rows: of training data.
        tasks: of the environment, by name.
        judge: answers the tools of the environment; entered by the caller.
        batch: gives rewards; entered by the caller; None for fine-tuning.
        more: arguments of the trainer's class, such as `processing_class`.
    """
    arguments_class, trainer_class = trainer_classes(recipe.trainer)
    if recipe.lora is not None:
        from peft import LoraConfig

        more["peft_config"] = LoraConfig(**recipe.lora)
    if batch is not None:
        more["callbacks"] = [monitor_callback(batch.log)]
        if recipe.trainer == "grpo":
            more["reward_funcs"] = TrlReward(batch)
            more["environment_factory"] = environment_factory(tasks, judge)
        else:
            more["environment_factory"] = environment_factory(tasks, judge, batch)
    trainer = None
    for number, stage in enumerate(recipe.stages):
        folder = str(out / f"stage-{number}")
        arguments = arguments_class(output_dir=folder, **{**recipe.arguments, **stage})
        trainer = trainer_class(model=model, args=arguments, train_dataset=rows, **more)
        trainer.train()
        trainer.save_model(folder)
        model = trainer.model
        more.pop("peft_config", None)  # the adapters are in the model by now
    return trainer


def main() -> None:
    """Train by the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--suite", default="passbench-v1")
    parser.add_argument("--service", default="http://127.0.0.1:8321")
    words = parser.parse_args()
    recipe = read_recipe(words.recipe)
    from datasets import Dataset, load_dataset

    if recipe.trainer == "sft":
        rows = load_dataset("json", data_files=str(words.data), split="train")
        train(recipe, words.out, recipe.model, rows, {}, None, None)
        return
    tasks = {task.name: task for task in load_suite(words.suite).tasks}
    address = ServiceAddress(words.service, os.environ["PASSNET_JUDGE_TOKEN"])
    settings = RunSettings(JudgeSettings(rules="strict"))
    judge = ServiceDesk(address, settings)
    turns = recipe.arguments.get("max_tool_calling_iterations") or 3
    rows = Dataset.from_list(chat_rows(tasks, judge, turns))
    with SampleLog(words.out, write_page=write_run_page) as log:
        batch = BatchReward(tasks, service_judge(address), log)
        train(recipe, words.out, recipe.model, rows, tasks, judge, batch)


if __name__ == "__main__":
    main()
