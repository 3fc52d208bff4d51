"""Preference of an llm's own right answers to its wrong ones, through TRL.

Each prompt gets the likeliest answer and some that are drawn. They earn what `rl` pays, by a run of
their loops and by the judge. The llm then learns by TRL's `DPOTrainer` to find right ones likelier
than wrong ones (direct preference optimisation, Rafailov et al., arXiv 2305.18290), with some of
the likelihood of the right ones in its loss (Pang et al., arXiv 2404.19733). The words before the
first that differs weigh nothing in the preference, so that it learns where it went wrong.
"""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from passnet.errors import InputError
from passnet.jobs.run_folder import RunFolder, unchanged
from passnet.records.serialise import SCHEMA_VERSION, LineWriter, read_json
from passnet.report.progress import progress
from passnet.train.build import read_training
from passnet.train.checkpoint import (
    INFO_FILE,
    TrainInfo,
    has_bfloat16,
    keep_llm,
    load_llm,
    require_trl,
)
from passnet.train.examples import TrainingRow
from passnet.train.loops.prompt import Prompt
from passnet.train.policy import BATCH, Policy
from passnet.train.rl import LIMITS, JudgeReward, RlSettings, subject_of
from passnet.train.sample_log import SampleLog
from passnet.train.sft import CURVE_FILE, curve_callback
from passnet.train.training_rows import split_rows_to_watch

DRAWN_FILE = "drawn.jsonl"


@dataclass(frozen=True, slots=True)
class DpoSettings:
    """How an llm learns from its own answers.

    Args:
        num_prompts: subgraphs that are asked for, those that fine-tuning only watched first.
        num_answers: to each, the likeliest and drawn ones.
        max_words: prompts with more words, with the teacher's answer, are left out.
        judge_every: of answers that a run does not show to be wrong, one in so many is judged.
        max_pairs: pairs of a right and a wrong answer of one prompt, at most.
        beta: how strongly the llm is held to what it was.
        copy_weight: how much the likelihood of right answers counts, where the preference counts 1.
    """

    num_prompts: int = 2400
    num_answers: int = 3
    temperature: float = 1.0
    max_words: int = 260
    judge_every: int = 16
    max_pairs: int = 4
    batch_size: int = 16
    learning_rate: float = 3e-5
    beta: float = 0.1
    copy_weight: float = 0.2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DpoInfo:
    """What a run was begun with: which llm, by what it was trained with, and which data."""

    schema_version: int
    start: TrainInfo
    data: tuple[str, ...]
    settings: DpoSettings


@dataclass(frozen=True, slots=True)
class DrawnAnswers:
    """The different answers of an llm to a prompt, and whether each is right; None where the judge
    could not say.
    """

    full: str
    answers: tuple[str, ...]
    are_right: tuple[bool | None, ...]


@dataclass(frozen=True, slots=True)
class Preference:
    """A right answer to a prompt, and a wrong one."""

    prompt: str
    chosen: str
    rejected: str


def run_dpo(
    folder: Path, start: Path, out: Path, settings: DpoSettings, resume: bool = False
) -> TrainInfo:
    """Let an llm answer subgraphs of training data, and learn which of its answers are right; it is
    kept in `out`.

    Raises:
        InputError: there is no data or llm, `out` holds a run and `resume` is off or it was begun
            otherwise, no answer is wrong, or TRL is missing.
    """
    require_trl()
    manifest, rows = read_training(folder)
    rows = prompts_to_ask(rows, settings)
    begun = read_json(start / INFO_FILE, TrainInfo)
    data = tuple(shard.sha256 for shard in manifest.shards)
    info = DpoInfo(SCHEMA_VERSION, begun, data, settings)
    run = RunFolder(
        out, "dpo.json", DpoInfo, DRAWN_FILE, DrawnAnswers, lambda each: each.full, "answers"
    )
    other = f"{out}: was begun with another llm, data or settings; choose another --out"
    with run.begin(info, resume, unchanged(other)):
        llm, tokenizer = load_llm(start)
        _draw(Policy(llm, tokenizer), rows, run, settings)
        drawn = run.records()
        pairs = [
            pair for row in rows for pair in preferences(row, drawn[row.full], settings.max_pairs)
        ]
        if not pairs:
            raise InputError(f"{out}: no answer is wrong, so that there is nothing to learn from")
        random.Random(settings.seed).shuffle(pairs)  # noqa: S311 (no secret)
        seconds = _prefer(llm, tokenizer, pairs, out, settings, resume)
        made = replace(begun, schema_version=SCHEMA_VERSION, stage="dpo", seconds=seconds)
        keep_llm(out, llm, tokenizer, made)
    return made


def prompts_to_ask(rows: Sequence[TrainingRow], settings: DpoSettings) -> list[TrainingRow]:
    """The rows whose prompts are asked: those that fine-tuning only watched, and others drawn, so
    many in all, the short ones first.
    """
    rows = [row for row in rows if row.words <= settings.max_words]
    learned, watched = split_rows_to_watch(rows)
    random.Random(settings.seed).shuffle(learned)  # noqa: S311 (no secret)
    chosen = [*watched, *learned][: settings.num_prompts]
    return sorted(chosen, key=lambda row: (len(row.prompt.split()), row.full))


def preferences(row: TrainingRow, drawn: DrawnAnswers, max_pairs: int) -> list[Preference]:
    """Pairs of a right and a wrong answer to a prompt. Where none was right, the teacher's is."""
    marked = list(zip(drawn.answers, drawn.are_right, strict=True))
    right = [answer for answer, is_right in marked if is_right] or [row.loops]
    wrong = [answer for answer, is_right in marked if is_right is False and answer not in right]
    if not wrong:
        return []
    count = min(max_pairs, max(len(right), len(wrong)))
    return [
        Preference(row.prompt + "\n", right[n % len(right)], wrong[n % len(wrong)])
        for n in range(count)
    ]


def _draw(
    policy: Policy,
    rows: Sequence[TrainingRow],
    run: RunFolder[DpoInfo, DrawnAnswers, str],
    settings: DpoSettings,
) -> None:
    """Let an llm answer the prompts that are not answered yet, and keep what became of it."""
    paid = RlSettings(judge_every=settings.judge_every)
    known = run.records()
    with (
        SampleLog(run.out, LIMITS) as log,
        JudgeReward(run.out, paid, log) as reward,
        LineWriter(run.records_path) as writer,
        progress("drawing answers", len(rows) - len(known)) as step,
    ):
        for number in range(0, len(rows), BATCH):
            part = [row for row in rows[number : number + BATCH] if row.full not in known]
            answers = _answers(policy, [subject_of(row).prompt for row in part], settings, number)
            for row, given in zip(part, answers, strict=True):
                first = len(log.samples)
                fields = ([row.program], [row.tensors], [row.full])
                reward([""] * len(given), given, *(len(given) * each for each in fields))
                marks = tuple(
                    None if each.reward is None else each.is_correct or each.is_right_where_run
                    for each in log.samples[first:]
                )
                writer.write(DrawnAnswers(row.full, tuple(given), marks))
                step(row.net)


def _answers(
    policy: Policy, prompts: Sequence[Prompt], settings: DpoSettings, number: int
) -> list[list[str]]:
    """The different answers to each prompt, the one of the likeliest words first. `number` is that
    of the first prompt.
    """
    longest = max((len(prompt.text.split()) for prompt in prompts), default=0)
    max_words = 2 * longest + 40  # the teacher's are longer in one row of 200
    answers = policy.answers(prompts, max_words=max_words)
    if settings.num_answers > 1:
        count, seed = settings.num_answers - 1, settings.seed + number
        drawn = policy.answers(prompts, count, settings.temperature, seed, max_words)
        answers = [first + others for first, others in zip(answers, drawn, strict=True)]
    return [list(dict.fromkeys(given)) for given in answers]


def _prefer(
    llm: Any,
    tokenizer: Any,
    pairs: Sequence[Preference],
    out: Path,
    settings: DpoSettings,
    resume: bool,
) -> float:
    """Let an llm learn from pairs, in place; the seconds that it took."""
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer  # type: ignore[missing-import]

    states = out / "states"
    config = DPOConfig(
        output_dir=str(states),
        use_cpu=True,
        bf16=has_bfloat16(),
        per_device_train_batch_size=settings.batch_size,
        num_train_epochs=1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        adam_beta2=0.98,
        beta=settings.beta,
        loss_type=["sigmoid", "sft"],
        loss_weights=[1.0, settings.copy_weight],
        max_length=llm.config.max_position_embeddings,
        logging_steps=1,
        save_steps=20,
        save_total_limit=1,
        report_to="none",
        seed=settings.seed,
        dataloader_pin_memory=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    has_state = resume and any(states.glob("checkpoint-*"))
    curve = curve_callback(out / CURVE_FILE, has_state)
    trainer = DPOTrainer(
        model=llm.train(),
        args=config,
        train_dataset=Dataset.from_list([asdict(pair) for pair in pairs]),
        processing_class=tokenizer,
        callbacks=[curve],
    )
    trainer.train(resume_from_checkpoint=True if has_state else None)
    return float(curve.seconds)
