"""Train an llm by a recipe of this folder, through TRL's trainers.

    python recipes/gpu/train.py RECIPE --out OUT [--data DATA] [--suite SUITE] [--resume]

DATA are chats of attempts to fine-tune on (`passnet agent export`); reinforcement needs none, as
prompts are the tasks of SUITE, by default `train-v1`. Rewards come from `passnet judge serve`,
whose address and token are in PASSNET_JUDGE_URL and PASSNET_JUDGE_TOKEN; what it judges on, the
prompts say. With `--resume` a training goes on from its last checkpoint. With several GPUs:

    accelerate launch --config_file ACCELERATE recipes/gpu/train.py RECIPE …
"""

import argparse
import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from passnet.agent.prompt import system_prompt
from passnet.errors import InputError, PassnetError
from passnet.judge.task import Task
from passnet.train.rewards.batch_rewards import BatchReward, service_judge
from passnet.train.rewards.environment import (
    TrlReward,
    chat_rows,
    environment_factory,
)
from passnet.train.rewards.sample_log import SampleLog, monitor_callback
from passnet.train.service.client import ServiceDesk, service_address, service_status
from passnet.train.tasks import TRAINING_SUITE, training_tasks
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

    def stage(self, number: int) -> dict[str, Any]:
        """Return all arguments of a stage."""
        return {**self.arguments, **self.stages[number]}

    def turns(self, number: int) -> int:
        """Return the number of turns in a stage."""
        return self.stage(number).get("max_tool_calling_iterations") or 3

    @property
    def num_steps(self) -> tuple[int, ...]:
        """Steps of each stage; 0 for one that counts epochs."""
        return tuple(self.stage(number).get("max_steps", 0) for number in range(len(self.stages)))

    def num_answers(self, num_processes: int) -> int:
        """Return the number of answers that all steps learn from."""
        kinds = ("per_device_train_batch_size", "gradient_accumulation_steps")
        counts = [
            steps * self.stage(number).get(kinds[0], 1) * self.stage(number).get(kinds[1], 1)
            for number, steps in enumerate(self.num_steps)
        ]
        return num_processes * sum(counts)


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
    rows_of: Callable[[int], Any],
    tasks: Mapping[str, Task],
    judge: Any,
    batch: BatchReward | None,
    **more: Any,
) -> Any:
    """Return the trainer after all stages of a recipe, going on where `out` has checkpoints.

    Args:
        recipe: the recipe.
        out: the folder of checkpoints, with a folder for each stage.
        model: the llm, or its name.
        rows_of: training data for a number of turns.
        tasks: of the environment, by name.
        judge: answers the tools of the environment; entered by the caller.
        batch: gives rewards; entered by the caller; None for fine-tuning.
        more: arguments of the trainer's class, such as `processing_class`.
    """
    from transformers.trainer_utils import get_last_checkpoint

    arguments_class, trainer_class = trainer_classes(recipe.trainer)
    if batch is not None:
        more["callbacks"] = [monitor_callback(batch.log)]
        asks = batch if recipe.trainer == "async_grpo" else None
        more["environment_factory"] = environment_factory(tasks, judge, asks)
    trainer, steps = None, recipe.num_steps
    for number in range(len(recipe.stages)):
        folder = out / f"stage-{number}"
        last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
        has_ended = last is not None and 0 < steps[number] <= int(last.rpartition("-")[2])
        if has_ended:
            model = _saved_model(last) if recipe.lora is not None else last
            if number + 1 < len(recipe.stages):
                continue
        if recipe.lora is not None and isinstance(model, str):
            from peft import LoraConfig

            more["peft_config"] = LoraConfig(**recipe.lora)
        if batch is not None and recipe.trainer == "grpo":
            parts = [share / max(sum(steps), 1) for share in (sum(steps[:number]), steps[number])]
            more["reward_funcs"] = TrlReward(batch, *parts) if all(steps) else TrlReward(batch)
        arguments = arguments_class(output_dir=str(folder), **recipe.stage(number))
        rows = rows_of(recipe.turns(number))
        trainer = trainer_class(model=model, args=arguments, train_dataset=rows, **more)
        if not has_ended:
            trainer.train(resume_from_checkpoint=last)
        trainer.save_model(str(folder))
        model = trainer.model
        more.pop("peft_config", None)  # the adapters are in the model by now
    return trainer


def _saved_model(checkpoint: str | None) -> Any:
    """Return an llm with the adapters of a checkpoint, which are trained on."""
    from peft import AutoPeftModelForCausalLM

    return AutoPeftModelForCausalLM.from_pretrained(checkpoint, is_trainable=True)


def main() -> None:
    """Train by the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--suite", default=TRAINING_SUITE)
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    words = parser.parse_args()
    try:
        _train(read_recipe(words.recipe), words)
    except PassnetError as cause:
        parser.error(str(cause))


def _train(recipe: GpuRecipe, words: argparse.Namespace) -> None:
    if not words.resume and any(words.out.glob("stage-*")):
        raise InputError(f"{words.out} holds a training; add --resume to go on, or choose another")
    if recipe.trainer == "sft":
        if words.data is None or not words.data.is_file():
            raise InputError("give --data: the file of chats that `passnet agent export` wrote")
        from datasets import load_dataset

        chats = load_dataset("json", data_files=str(words.data), split="train")
        train(recipe, words.out, recipe.model, lambda _: chats, {}, None, None)
        return
    address, tasks = service_address(), training_tasks(words.suite)
    judge = ServiceDesk(address, asyncio.run(service_status(address)).run)
    num_answers = recipe.num_answers(int(os.environ.get("WORLD_SIZE", "1")))
    from datasets import Dataset

    rows = chat_rows(tasks, judge, recipe.turns(0))

    def rows_of(turns: int) -> Any:
        system = {"role": "system", "content": system_prompt(judge.settings, turns)}
        return Dataset.from_list([{**row, "prompt": [system, *row["prompt"][1:]]} for row in rows])

    with SampleLog(words.out, write_page=write_run_page) as log:
        batch = BatchReward(tasks, service_judge(address), log, num_answers=num_answers)
        train(recipe, words.out, recipe.model, rows_of, tasks, judge, batch)


if __name__ == "__main__":
    main()
