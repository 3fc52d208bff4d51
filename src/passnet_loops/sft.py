"""Supervised fine-tuning, from nothing or from a checkpoint, by TRL's trainer."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any

from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.records.serialise import SCHEMA_VERSION, drop_torn_line, read_lines
from passnet.errors import InputError
from passnet_loops.checkpoint import (
    INFO_FILE,
    TrainInfo,
    has_bfloat16,
    keep_llm,
    llm_digest,
    load_llm,
    new_llm,
    read_info,
    require_trl,
)
from passnet_loops.data.build import read_training
from passnet_loops.data.examples import OWN_AUTHOR, TrainingRow
from passnet_loops.data.training_rows import (
    TextPair,
    first_structures,
    pairs_of,
    split_rows_to_watch,
    word_tokenizer,
)
from passnet_loops.settings import SftPlan, SftSettings

BEGIN_FILE = "sft.json"
"""The record of a run's LLM before the first step: data, settings and the LLM it began with."""

CURVE_FILE = "curve.jsonl"

STATES = "states"
"""The folder of a run that holds the trainer's states."""

NUM_WATCHED = 60
"""Rows to watch the loss on."""


def run_sft(
    folder: Path,
    out: Path,
    settings: SftSettings,
    plan: SftPlan = SftPlan(),  # noqa: B008
) -> TrainInfo:
    """Fine-tune an LLM on the training data in `folder`, and write it to `out`.

    Raises:
        InputError: There is no data, `out` holds a run that is not to be resumed or was begun
            otherwise, or TRL is missing.
    """
    require_trl()
    data = _lessons(folder, settings, plan.others)
    llm, tokenizer, info = _beginning(data, settings, plan.start)
    with begin_training(out, info, plan.resume):
        if not plan.is_untrained:
            curve = _train(llm, tokenizer, data, info.settings, out, plan.resume)
            info = replace(info, stage="sft", seconds=curve.seconds)
        keep_llm(out, llm, tokenizer, info)
    return info


@contextmanager
def begin_training(out: Path, info: TrainInfo, resume: bool) -> Iterator[None]:
    """Record the beginning of a run in its folder, or check that a resumed run began like this.

    Raises:
        InputError: `out` holds a run without such a record, one that began otherwise, or any while
            `resume` is off.
    """
    for name in (INFO_FILE, STATES):
        if (out / name).exists() and not (out / BEGIN_FILE).exists():
            raise InputError(f"{out}: holds {name} but no {BEGIN_FILE}; choose another --out")
    files = (BEGIN_FILE, TrainInfo, CURVE_FILE, dict[str, float])
    run = RunFolder(out, *files, itemgetter("step"), "logged steps")
    complaint = f"{out}: began with other data, settings or LLM; choose another --out"
    with run.begin(info, resume, unchanged(complaint)):
        yield


@dataclass(frozen=True)
class _Lessons:
    """The rows of some training data: to learn, to watch the loss on, and all for the tokenizer."""

    learned: list[TrainingRow]
    watched: list[TrainingRow]
    rows: list[TrainingRow]
    hashes: tuple[str, ...]
    evaluations: tuple[Mapping[str, str], ...]
    """Suites that each part of the data is kept apart from."""


def _lessons(folder: Path, settings: SftSettings, more_folders: Sequence[Path]) -> _Lessons:
    manifest, rows = read_training(folder)
    learned, watched = split_rows_to_watch(rows)
    learned = first_structures(learned, settings.num_structures)
    manifests = [manifest]
    for more_folder in more_folders:
        more, own_rows = read_training(more_folder)
        learned += split_rows_to_watch(own_rows)[0]
        manifests.append(more)
    return _Lessons(
        learned,
        watched,
        rows,
        tuple(content_hash for manifest in manifests for content_hash in manifest.file_hashes),
        tuple(manifest.evaluation for manifest in manifests),
    )


def _beginning(
    data: _Lessons, settings: SftSettings, start: Path | None
) -> tuple[Any, Any, TrainInfo]:
    """Return the LLM to begin with, its tokenizer, and its record."""
    hashes, evaluations = data.hashes, data.evaluations
    if start is None:
        texts = (text for row in data.rows for text in (row.prompt, row.loops))
        tokenizer = word_tokenizer(texts)
        llm = new_llm(tokenizer, settings.shape, settings.seed)
    else:
        llm, tokenizer = load_llm(start)
        if (start / INFO_FILE).exists():
            before = read_info(start)
            settings = replace(settings, shape=before.settings.shape)
            hashes += before.data
            evaluations += (before.evaluation,)
    info = TrainInfo(
        SCHEMA_VERSION,
        "untrained",
        sum(parameter.numel() for parameter in llm.parameters()),
        len(data.learned),
        len({row.structure for row in data.learned}),
        tuple(dict.fromkeys(hashes)),
        common_suites(evaluations),
        settings,
        0.0,
        sum(row.author == OWN_AUTHOR for row in data.learned),
        None if start is None else llm_digest(start),
    )
    return llm, tokenizer, info


def _train(
    llm: Any, tokenizer: Any, data: _Lessons, settings: SftSettings, out: Path, resume: bool
) -> Any:
    """Train the LLM in place; return the callback that wrote its curve."""
    from trl import SFTConfig, SFTTrainer  # type: ignore[missing-import]

    has_state = resume and any((out / STATES).glob("checkpoint-*"))
    curve = curve_callback(out / CURVE_FILE, has_state)
    pairs = pairs_of(
        data.learned, settings.num_copies, settings.seed, settings.max_words, settings.is_renamed
    )
    watched_pairs = pairs_of(data.watched, 1, 0, settings.max_words)[:NUM_WATCHED]
    trainer = SFTTrainer(
        model=llm,
        args=SFTConfig(
            output_dir=str(out / STATES),
            use_cpu=True,
            bf16=settings.is_bfloat16,
            per_device_train_batch_size=settings.batch_size,
            per_device_eval_batch_size=settings.batch_size,
            num_train_epochs=1,
            lr_scheduler_type="cosine",
            warmup_steps=60,
            max_length=settings.max_words + 8,
            train_sampling_strategy="group_by_length",
            completion_only_loss=True,
            logging_steps=10,
            save_steps=100,
            save_total_limit=1,
            eval_strategy="steps",
            eval_steps=250,
            report_to="none",
            seed=settings.seed,
            dataloader_pin_memory=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
        ),
        train_dataset=text_dataset(pairs),
        eval_dataset=text_dataset(watched_pairs),
        processing_class=tokenizer,
        callbacks=[curve],
        optimizers=(muon_optimizer(llm, settings.learning_rate, has_bfloat16()), None),
    )
    trainer.train(resume_from_checkpoint=True if has_state else None)
    return curve


def common_suites(evaluations: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the suites, with their content hashes, that all parts of the data keep apart from."""
    first, *later = evaluations
    return {
        name: content_hash
        for name, content_hash in first.items()
        if all(content_hash in evaluation.values() for evaluation in later)
    }


def muon_optimizer(llm: Any, learning_rate: float, is_bfloat16: bool) -> Any:
    """Return Muon for the matrices of layers, and AdamW for all else.

    The library's Muon makes updates orthogonal in bfloat16. Without `is_bfloat16` it does so in
    float32: else that takes two thirds of a step on a processor that does not multiply in bfloat16
    (AMD Milan, 2 million parameters).
    """
    import torch
    from pytorch_optimizer import Muon  # type: ignore[missing-import]
    from pytorch_optimizer.optimizer.utils.matrix import (  # type: ignore[missing-import]
        zero_power_via_newton_schulz_5,
    )

    class Float32Muon(Muon):
        @staticmethod
        def _orthogonalize(group: Any, updates: list[torch.Tensor]) -> list[torch.Tensor]:
            return [
                zero_power_via_newton_schulz_5(
                    update, group["ns_steps"], weights=group["ns_coeffs"], dtype=torch.float32
                )
                for update in updates
            ]

    matrices, vectors = [], []
    for name, parameter in llm.named_parameters():
        is_matrix = parameter.ndim == 2 and "embed" not in name
        (matrices if is_matrix else vectors).append(parameter)
    settings = {"weight_decay": 0.05}
    muon = settings | {"params": matrices, "use_muon": True, "lr": 5 * learning_rate}
    adamw = settings | {"params": vectors, "lr": learning_rate, "betas": (0.9, 0.98)}
    return (Muon if is_bfloat16 else Float32Muon)([muon, adamw | {"use_muon": False}])


def text_dataset(pairs: Sequence[TextPair]) -> Any:
    """Return pairs as a dataset for TRL."""
    from datasets import Dataset

    return Dataset.from_dict(
        {"prompt": [pair.prompt for pair in pairs], "completion": [pair.answer for pair in pairs]}
    )


def curve_callback(
    path: Path, goes_on: bool = False, clock: Callable[[], float] = time.monotonic
) -> Any:
    """Return a callback that writes what TRL logs as JSON lines, with the `seconds` of training.

    A run that goes on adds to the lines, and to the time, of the runs before it.
    """
    import json

    from transformers import TrainerCallback

    class Curve(TrainerCallback):
        def __init__(self) -> None:
            earlier_s = 0.0
            if goes_on and path.exists():
                drop_torn_line(path)
                rows = read_lines(path, dict[str, float])  # type: ignore[arg-type]
                earlier_s = max([row.get("seconds", 0.0) for row in rows], default=0.0)
            else:
                path.unlink(missing_ok=True)
            self._start = clock() - earlier_s

        @property
        def seconds(self) -> float:
            return round(clock() - self._start, 1)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            numbers = {
                k: v for k, v in (logs or {}).items() if isinstance(v, int | float) and isfinite(v)
            }
            line = {"step": state.global_step, "seconds": self.seconds, **numbers}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    return Curve()
