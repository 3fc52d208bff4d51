"""Supervised fine-tuning, from nothing or from a checkpoint, by TRL's trainer."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import SCHEMA_VERSION, drop_torn_line, read_json, read_lines
from passnet.errors import InputError
from passnet_loops.build import read_training
from passnet_loops.checkpoint import (
    INFO_FILE,
    SftSettings,
    TrainInfo,
    has_bfloat16,
    keep_llm,
    llm_digest,
    load_llm,
    new_llm,
    require_trl,
)
from passnet_loops.examples import OWN_AUTHOR
from passnet_loops.tokenizer import word_tokenizer
from passnet_loops.training_rows import (
    TextPair,
    first_structures,
    pairs_of,
    split_rows_to_watch,
)

CURVE_FILE = "curve.jsonl"


def run_sft(
    folder: Path,
    out: Path,
    settings: SftSettings,
    start: Path | None = None,
    resume: bool = False,
    is_untrained: bool = False,
    others: Sequence[Path] = (),
) -> TrainInfo:
    """Fine-tune an llm on training data, and keep it in `out`.

    Args:
        folder: the training data.
        out: the folder of the run.
        settings: how.
        start: a checkpoint to begin with, instead of an untrained llm.
        resume: go on with the last state that `out` holds.
        is_untrained: only keep the llm as it is before anything is learned.
        others: more training data, all of which is learned too.

    Raises:
        InputError: there is no data, `out` holds a run and `resume` is off, or TRL is missing.
    """
    require_trl()
    from trl import SFTConfig, SFTTrainer  # type: ignore[missing-import]

    manifest, rows = read_training(folder)
    learned, watched = split_rows_to_watch(rows)
    learned = first_structures(learned, settings.num_structures)
    data = list(manifest.file_hashes)
    kept_apart = [manifest.evaluation]
    for other in others:
        manifest_of_other, more = read_training(other)
        learned += split_rows_to_watch(more)[0]
        data += manifest_of_other.file_hashes
        kept_apart.append(manifest_of_other.evaluation)
    pairs = pairs_of(
        learned, settings.num_copies, settings.seed, settings.max_words, settings.is_renamed
    )
    states = out / "states"
    if (out / INFO_FILE).exists() and not resume:
        raise InputError(f"{out}: already holds a run; add --resume, or choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    if start is None:
        tokenizer = word_tokenizer(text for row in rows for text in (row.prompt, row.loops))
        llm = new_llm(tokenizer, settings.shape, settings.seed)
    else:
        llm, tokenizer = load_llm(start)
        if (start / INFO_FILE).exists():
            before = read_json(start / INFO_FILE, TrainInfo)
            settings = replace(settings, shape=before.settings.shape)
            data += before.data
            kept_apart.append(before.evaluation)
    info = TrainInfo(
        SCHEMA_VERSION,
        "untrained",
        sum(parameter.numel() for parameter in llm.parameters()),
        len(learned),
        len({row.structure for row in learned}),
        tuple(dict.fromkeys(data)),
        _of_all(kept_apart),
        settings,
        0.0,
        sum(row.author == OWN_AUTHOR for row in learned),
        None if start is None else llm_digest(start),
    )
    if is_untrained:
        keep_llm(out, llm, tokenizer, info)
        return info
    config = SFTConfig(
        output_dir=str(states),
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
        dataset_num_proc=None,
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
    )
    has_state = resume and any(states.glob("checkpoint-*"))
    curve = curve_callback(out / CURVE_FILE, has_state)
    trainer = SFTTrainer(
        model=llm,
        args=config,
        train_dataset=text_dataset(pairs),
        eval_dataset=text_dataset(pairs_of(watched, 1, 0, settings.max_words)[:60]),
        processing_class=tokenizer,
        callbacks=[curve],
        optimizers=(_optimizer(llm, settings.learning_rate), None),
    )
    trainer.train(resume_from_checkpoint=True if has_state else None)
    info = replace(info, stage="sft", seconds=curve.seconds)
    keep_llm(out, llm, tokenizer, info)
    return info


def _of_all(kept_apart: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The suites, by name with their content hashes, that all of some data is kept apart from."""
    first, *others = kept_apart
    return {
        name: content_hash
        for name, content_hash in first.items()
        if all(content_hash in other.values() for other in others)
    }


def float32_muon() -> Any:
    """Muon that makes updates orthogonal in float32. The library does so in bfloat16, which takes
    two thirds of a step on a processor without it (AMD Milan, 2 million parameters).
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

    return Float32Muon


def _optimizer(llm: Any, learning_rate: float) -> Any:
    """Muon for the matrices of layers, AdamW for all else."""
    from pytorch_optimizer import Muon  # type: ignore[missing-import]

    kind = Muon if has_bfloat16() else float32_muon()

    is_matrix = {
        name: parameter.ndim == 2 and "embed" not in name
        for name, parameter in llm.named_parameters()
    }
    matrices = [each for name, each in llm.named_parameters() if is_matrix[name]]
    others = [each for name, each in llm.named_parameters() if not is_matrix[name]]
    return kind([
        {"params": matrices, "use_muon": True, "lr": 5 * learning_rate, "weight_decay": 0.05},
        {"params": others, "use_muon": False, "lr": learning_rate, "betas": (0.9, 0.98),
         "weight_decay": 0.05},
    ])  # fmt: skip


def text_dataset(pairs: Sequence[TextPair]) -> Any:
    """Pairs as a dataset that TRL reads."""
    from datasets import Dataset

    return Dataset.from_dict(
        {"prompt": [pair.prompt for pair in pairs], "completion": [pair.answer for pair in pairs]}
    )


def curve_callback(path: Path, goes_on: bool = False) -> Any:
    """A callback that writes what is logged as JSON lines, each with the `seconds` that training
    has taken until then. A run that goes on adds to the lines and the time of those before it.
    """
    import json

    from transformers import TrainerCallback

    class Curve(TrainerCallback):
        def __init__(self) -> None:
            known = [0.0]
            if goes_on and path.exists():
                drop_torn_line(path)
                rows = read_lines(path, dict[str, float])  # type: ignore[arg-type]
                known += [row.get("seconds", 0.0) for row in rows]
            else:
                path.unlink(missing_ok=True)
            self._begun = time.monotonic() - max(known)

        @property
        def seconds(self) -> float:
            return round(time.monotonic() - self._begun, 1)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            numbers = {
                k: v for k, v in (logs or {}).items() if isinstance(v, int | float) and isfinite(v)
            }
            line = {"step": state.global_step, "seconds": self.seconds, **numbers}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    return Curve()
