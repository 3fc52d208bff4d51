"""Reinforcement by GRPO, through TRL, with the judge as the reward."""

from dataclasses import dataclass, replace
from pathlib import Path

from passnet.core.records.serialise import SCHEMA_VERSION, drop_lines, read_json
from passnet.errors import InputError
from passnet.train.rewards.monitors import MonitorLimits
from passnet.train.rewards.sample_log import SampleLog, monitor_callback
from passnet.train.rewards.samples import SAMPLES_FILE
from passnet_loops.build import read_training
from passnet_loops.checkpoint import INFO_FILE, TrainInfo, keep_llm, load_llm, require_trl
from passnet_loops.examples import TrainingRow
from passnet_loops.loops_reward import ROLLOUTS_FILE, JudgeReward, Rollout, subject_of
from passnet_loops.policy import keep_to_grammar
from passnet_loops.row_judge import QUICK_TIMING
from passnet_loops.sft import CURVE_FILE, curve_callback
from passnet_loops.training_rows import split_rows_to_watch

STATES = "states"

LIMITS = MonitorLimits(least_entropy=0.001)
"""Most words of an answer in loops follow from those before it, and leave little to choose."""


@dataclass(frozen=True, slots=True)
class RlSettings:
    """How an llm is reinforced.

    Args:
        num_steps: optimiser steps, each on `num_prompts` prompts with `num_answers` answers each.
        stage_steps: over so many steps the credit for stages goes to nothing.
        judge_every: of answers that a run of their loops does not show to be wrong, one in so many
            is judged, which takes most of a step; the others earn what a correct one does, times
            the share of those judged so far that were correct.
        is_timed: pay for speed too, not for correctness alone.
        is_free: answers may have any word, not only those that the grammar allows.
    """

    num_steps: int = 16
    num_prompts: int = 4
    num_answers: int = 8
    learning_rate: float = 5e-5
    temperature: float = 1.0
    max_words: int = 220
    max_prompt_words: int = 160
    stage_steps: int = 64
    judge_every: int = 1
    is_timed: bool = False
    seed: int = 0
    is_free: bool = False


def run_rl(
    folder: Path, start: Path, out: Path, settings: RlSettings, resume: bool = False
) -> TrainInfo:
    """Reinforce an llm on the subgraphs of training data that fine-tuning only watched, and keep it
    in `out`: those that it learned by heart would teach it nothing.

    Raises:
        InputError: there is no data or llm, `out` holds a run and `resume` is off, speed is to be
            paid for of answers that are not judged, or TRL is missing.
        TrainingStoppedError: a monitor is beyond its limit.
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
    states = out / STATES
    config = GRPOConfig(
        output_dir=str(states),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=settings.num_answers,
        gradient_accumulation_steps=settings.num_prompts,
        num_generations=settings.num_answers,
        max_completion_length=settings.max_words,
        max_steps=settings.num_steps,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=2,
        temperature=settings.temperature,
        beta=0.0,
        scale_rewards="group",
        mask_truncated_completions=True,
        logging_steps=1,
        save_steps=4,
        save_total_limit=1,
        report_to="none",
        seed=settings.seed,
        dataloader_pin_memory=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    has_state = resume and any(states.glob("checkpoint-*"))
    curve = curve_callback(out / CURVE_FILE, has_state)
    log = SampleLog(out, LIMITS)
    forget_redone(log)
    timing = QUICK_TIMING if settings.is_timed else None
    judged = JudgeReward(out, log, timing, settings.stage_steps, settings.judge_every)
    with log, judged as reward:
        trainer = GRPOTrainer(
            model=llm.train(),
            reward_funcs=reward,  # type: ignore[arg-type]
            args=config,
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


def forget_redone(log: SampleLog) -> None:
    """Take answers out of a run that came after its last state: others come in their place."""
    steps = [int(path.name.rpartition("-")[2]) for path in (log.out / STATES).glob("checkpoint-*")]
    begins = max(steps, default=0)
    log.forget_from(begins)
    drop_lines(log.out / ROLLOUTS_FILE, Rollout, lambda each: each.step >= begins)


def _prompt_row(row: TrainingRow) -> dict[str, str]:
    return {
        "prompt": row.prompt + "\n",
        "program": row.program,
        "tensors": row.tensors,
        "full": row.full,
    }
