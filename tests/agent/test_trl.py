"""TRL's trainer reads the chats that are exported; skipped where TRL is not installed."""

from pathlib import Path
from typing import Any

import pytest

from passnet.agent.trajectories.training_data import write_chats
from tests.agent.attempts import ATTEMPT, different, load_rows, selection
from tests.agent.byte_tokenizer import byte_tokenizer

pytest.importorskip("trl", reason="TRL is not installed (pip install trl)")
pytestmark = pytest.mark.slow

UNTRAINED = -100


@pytest.fixture
def tokenizer() -> Any:
    """Return a tokenizer of one token a byte, with TRL's training template for Qwen 3."""
    return byte_tokenizer("qwen3_training.jinja")


@pytest.fixture
def trainer(tokenizer: Any, tmp_path: Path) -> Any:
    """TRL's trainer of a tiny llm on two chats."""
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from trl import SFTConfig, SFTTrainer

    out = tmp_path / "chat.jsonl"
    write_chats(out, selection(ATTEMPT, different(1)))
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=8,
    )  # fmt: skip
    arguments = SFTConfig(
        output_dir=str(tmp_path / "out"), assistant_only_loss=True, max_length=None, max_steps=1,
        per_device_train_batch_size=1, report_to=[], use_cpu=True, bf16=False,
    )  # fmt: skip
    return SFTTrainer(
        model=Qwen3ForCausalLM(config),
        args=arguments,
        train_dataset=load_rows(out, tmp_path),
        processing_class=tokenizer,
    )


def test_what_the_author_said_is_learned_and_nothing_else(trainer: Any, tokenizer: Any) -> None:
    row = trainer.train_dataset[0]
    pairs = zip(row["input_ids"], row["labels"], strict=True)
    text = tokenizer.decode(row["input_ids"])
    learned = tokenizer.decode([token for token, label in pairs if label != UNTRAINED])
    for own in (
        '{"name": "create", "arguments": {"name": "Fuse.py", "text": "x = 1\\n"}}',
        '{"name": "submit", "arguments": {}}',
    ):
        assert own in learned
    for foreign_text in ("You write passes.", "Task relu.", "answer to create", "Delete a file"):
        assert foreign_text in text
        assert foreign_text not in learned


def test_a_step_can_be_made(trainer: Any) -> None:
    assert trainer.train().global_step == 1
