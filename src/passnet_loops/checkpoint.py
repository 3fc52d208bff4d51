"""LLMs on disk: created, written with a model card, and loaded."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passnet.agent.settings import weight_files
from passnet.core.records.serialise import read_json, write_json
from passnet.core.records.untrusted import contents_digest
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.errors import InputError, check_exists
from passnet_loops.settings import LlmShape, SftSettings

MODEL_FOLDER = "model"
INFO_FILE = "train.json"
CARD_FILE = "README.md"
NO_LLM = "holds no llm; give the folder of `passnet train sft`"


@dataclass(frozen=True, slots=True)
class TrainInfo:
    """The training of a checkpoint."""

    schema_version: int
    stage: str
    """One of "untrained", "sft" and "rl"."""

    num_parameters: int
    num_rows: int
    num_structures: int
    data: tuple[str, ...]
    """Hashes of the files of all stages."""

    evaluation: dict[str, str]
    """Suites that all data is kept apart from."""

    settings: SftSettings
    seconds: float
    num_own_rows: int = 0
    """Rows of the last fine-tuning with an LLM's own answers."""

    start: str | None = None
    """Digest of the LLM that it began with."""


def has_bfloat16() -> bool:
    """Return True if this processor multiplies in bfloat16, by AVX-512 or AMX."""
    import torch

    if not torch.backends.mkldnn.is_available():
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # as Inductor asks


def new_llm(tokenizer: Any, shape: LlmShape, seed: int) -> Any:
    """Create an untrained LLM."""
    from transformers import Lfm2Config, Lfm2ForCausalLM, set_seed

    set_seed(seed)
    config = Lfm2Config(
        vocab_size=len(tokenizer),
        hidden_size=shape.width,
        intermediate_size=3 * shape.width,
        block_auto_adjust_ff_dim=False,
        num_hidden_layers=shape.num_layers,
        num_attention_heads=shape.num_heads,
        num_key_value_heads=shape.num_heads,
        layer_types=["full_attention" if n % 2 else "conv" for n in range(shape.num_layers)],
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        max_position_embeddings=shape.max_words,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Lfm2ForCausalLM(config)


def require_trl() -> None:
    """Check that TRL is installed.

    Raises:
        InputError: It is not; the sentence says what to install.
    """
    _require("training", "trl", "transformers", "pytorch_optimizer")


def require_transformers() -> None:
    """Check that transformers is installed; it is enough to ask an LLM.

    Raises:
        InputError: It is not; the sentence says what to install.
    """
    _require("a small LLM", "transformers")


def _require(purpose: str, *names: str) -> None:
    from importlib.util import find_spec

    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise InputError(f"{purpose} needs {', '.join(missing)}; pip install 'passnet[train]'")
    with suppress(ImportError):  # transformers does without it, but not with half of it
        import_torchvision()


def keep_llm(out: Path, llm: Any, tokenizer: Any, info: TrainInfo) -> None:
    """Write an LLM with its tokenizer, its model card and its record."""
    import torch

    folder = out / MODEL_FOLDER
    llm.to(torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / CARD_FILE).write_text(model_card(info), encoding="utf-8")
    write_json(out / INFO_FILE, info)


def read_info(folder: Path) -> TrainInfo:
    """Read the training of the LLM in a run's folder; raise InputError if there is none."""
    check_exists(folder)
    if not (folder / INFO_FILE).exists():
        raise InputError(f"{folder}: {NO_LLM}")
    return read_json(folder / INFO_FILE, TrainInfo)


def load_llm(folder: Path) -> tuple[Any, Any]:
    """Load an LLM and its tokenizer from a run's folder, in float32.

    Raises:
        InputError: There is none, or transformers is missing.
    """
    require_transformers()
    import torch
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    model_folder = _model_folder(folder, "config.json")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(model_folder, local_files_only=True)
    llm = AutoModelForCausalLM.from_pretrained(
        model_folder, local_files_only=True, dtype=torch.float32
    )
    return llm.eval(), tokenizer


def llm_digest(folder: Path) -> str:
    """Return the SHA-256 of the weights in a run's folder; raise InputError without weights."""
    _model_folder(folder, "*.safetensors")
    return contents_digest(weight_files(folder))


def _model_folder(folder: Path, needed: str) -> Path:
    """Return the folder of an LLM, which may be that of its run; it holds a file of that name."""
    check_exists(folder)
    model_folder = folder / MODEL_FOLDER if (folder / MODEL_FOLDER).is_dir() else folder
    if not any(model_folder.glob(needed)):
        raise InputError(f"{folder}: {NO_LLM}")
    return model_folder


_STAGES = {
    "untrained": "Nothing has been learned yet: it is there to compare with.",
    "sft": "It was fine-tuned on a teacher's answers, by TRL's `SFTTrainer`.",
}

_CARD = """\
---
library_name: transformers
pipeline_tag: text-generation
tags: [passnet, {stage}]
---

# A small llm that writes compiler passes

{parameters:.1f} M parameters, begun from {start}: LFM2, width {width}, {layers} layers, a token a
word. {learned}

- **What it does:** it answers prompts of passnet's `loops` form: which ops of a graph are fused,
  the loop nests and their arithmetic. It knows no English.
- **Data:** {rows} rows of {structures} structures with the answers of the author `compiler`, which
  are Inductor's loops{own}; kept apart by structure and by op sequence from {evaluation}.
- **Settings:** {copies} copies of each row, {batch} rows a step, learning rate {rate:g},
  seed {seed}; {seconds:.0f} s in the last stage of training.
- **Use:** `passnet agent run --author trained --checkpoint FOLDER`, or
  `passnet optimize NET --author trained:FOLDER`.
- **Limits:** it imitates a teacher, for CPUs, and is often wrong, most of all where answers are
  long. Each answer goes through the judge, and is worth nothing before that.
"""


def model_card(info: TrainInfo) -> str:
    """Return the text of the model card."""
    settings = info.settings
    return _CARD.format(
        stage=info.stage,
        parameters=info.num_parameters / 1e6,
        start="nothing" if info.start is None else f"the llm {info.start[:16]}",
        width=settings.shape.width,
        layers=settings.shape.num_layers,
        learned=_STAGES[info.stage],
        rows=info.num_rows,
        structures=info.num_structures,
        own=f", but {info.num_own_rows} with an llm's own right answers"
        if info.num_own_rows
        else "",
        evaluation=", ".join(sorted(info.evaluation)) or "no suite",
        copies=settings.num_copies,
        batch=settings.batch_size,
        rate=settings.learning_rate,
        seed=settings.seed,
        seconds=info.seconds,
    )
