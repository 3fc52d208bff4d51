"""Reinforcement by GRPO, through TRL, with the judge as the reward."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import SCHEMA_VERSION, drop_lines, read_json
from passnet.errors import InputError
from passnet.pages.figures.training_page import write_run_page
from passnet.train.rewards.monitors import MonitorLimits
from passnet.train.rewards.sample_log import SampleLog, monitor_callback
from passnet.train.rewards.samples import SAMPLES_FILE
from passnet_loops.build import read_training
from passnet_loops.checkpoint import INFO_FILE, TrainInfo, keep_llm, load_llm, require_trl
from passnet_loops.examples import TrainingRow
from passnet_loops.loops_reward import (
    ROLLOUTS_FILE,
    JudgeReward,
    RewardPlan,
    Rollout,
    subject_of,
)
from passnet_loops.policy import keep_to_grammar
from passnet_loops.row_judge import QUICK_TIMING
from passnet_loops.sft import CPU_TRAINER, CURVE_FILE, STATES, curve_callback
from passnet_loops.training_rows import split_rows_to_watch

LIMITS = MonitorLimits(least_entropy=0.001)
"""Most words of an answer follow from those before, so entropy is low."""


@dataclass(frozen=True, slots=True)
class RlSettings:
    """How an LLM is reinforced."""

    num_steps: int = 16
    """Optimiser steps."""

    num_prompts: int = 4
    """Prompts of a step."""

    num_answers: int = 8
    """Answers to each prompt."""

    learning_rate: float = 5e-5
    """Learning rate."""

    temperature: float = 1.0
    """Temperature of the answers."""

    max_words: int = 220
    """Length of an answer."""

    max_prompt_words: int = 160
    """Pass over longer prompts."""

    stage_steps: int = 64
    """Steps after which stages earn nothing."""

    judge_every: int = 1
    """Judge one in this many of the answers that pass a run of their loops."""

    is_timed: bool = False
    """Reward speed too, not correctness alone."""

    seed: int = 0
    """Seed of the samples."""

    is_free: bool = False
    """Allow any word, not only those of the grammar."""


def run_rl(
    folder: Path, start: Path, out: Path, settings: RlSettings, resume: bool = False
) -> TrainInfo:
    """Reinforce an LLM on the subgraphs that fine-tuning only watched, and write it to `out`.

    Subgraphs that it has learned would teach it nothing.

    Raises:
        InputError: There is no data or LLM, `out` holds a run and `resume` is off, speed is to be
            rewarded for answers that are not judged, or TRL is missing.
        TrainingStoppedError: A monitor is beyond its limit.
    """
    if settings.is_timed and settings.judge_every > 1:
        raise InputError("--timed pays for speed, which only the judge knows; leave out --judge")
    require_trl()
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer  # type: ignore[missing-import]

    if not resume and any((out / name).exists() for name in (INFO_FILE, SAMPLES_FILE)):
        raise InputError(f"{out}: already holds a run; add --resume, or choose another --out")
    _, rows = read_training(folder)
    _, unlearned = split_rows_to_watch(rows)
    rows = [row for row in unlearned if len(row.prompt.split()) <= settings.max_prompt_words]
    if not rows:
        raise InputError(
            f"{folder}: no prompt to watch has {settings.max_prompt_words} words or fewer"
        )
    llm, tokenizer = load_llm(start)
    if not settings.is_free:
        texts = [row.prompt + "\n" for row in rows]
        subjects = [(row.program, row.tensors, row.full) for row in rows]
        keep_to_grammar(llm, tokenizer, texts, lambda number: subject_of(*subjects[number]).prompt)
    out.mkdir(parents=True, exist_ok=True)
    has_state = resume and any((out / STATES).glob("checkpoint-*"))
    curve = curve_callback(out / CURVE_FILE, has_state)
    log = SampleLog(out, LIMITS, write_run_page)
    forget_redone(log)
    timing = QUICK_TIMING if settings.is_timed else None
    plan = RewardPlan(timing, settings.stage_steps, settings.judge_every)
    with log, JudgeReward(out, log, plan) as reward:
        trainer = GRPOTrainer(
            model=llm.train(),
            reward_funcs=reward,  # type: ignore[arg-type]
            args=GRPOConfig(**_trainer_settings(out, settings)),
            train_dataset=Dataset.from_list([_prompt_row(row) for row in rows]),
            processing_class=tokenizer,
            callbacks=[curve, monitor_callback(log)],
        )
        trainer.train(resume_from_checkpoint=True if has_state else None)
    info = replace(
        read_json(start / INFO_FILE, TrainInfo),
        schema_version=SCHEMA_VERSION,
        stage="rl",
        seconds=curve.seconds,
    )
    keep_llm(out, llm, tokenizer, info)
    return info


def _trainer_settings(out: Path, settings: RlSettings) -> dict[str, Any]:
    return CPU_TRAINER | {
        "output_dir": str(out / STATES),
        "bf16": False,
        "per_device_train_batch_size": settings.num_answers,
        "gradient_accumulation_steps": settings.num_prompts,
        "num_generations": settings.num_answers,
        "max_completion_length": settings.max_words,
        "max_steps": settings.num_steps,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": 2,
        "temperature": settings.temperature,
        "beta": 0.0,
        "scale_rewards": "group",
        "mask_truncated_completions": True,
        "logging_steps": 1,
        "save_steps": 4,
        "seed": settings.seed,
    }


def forget_redone(log: SampleLog) -> None:
    """Drop the answers after the last saved state; training makes them again."""
    steps = [int(path.name.rpartition("-")[2]) for path in (log.out / STATES).glob("checkpoint-*")]
    first_step = max(steps, default=0)
    log.forget_from(first_step)
    drop_lines(log.out / ROLLOUTS_FILE, Rollout, lambda rollout: rollout.step >= first_step)


def _prompt_row(row: TrainingRow) -> dict[str, str]:
    return {
        "prompt": row.prompt + "\n",
        "program": row.program,
        "tensors": row.tensors,
        "full": row.full,
    }
