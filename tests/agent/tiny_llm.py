"""A tiny language model that has learned one trajectory by heart, and a server that runs it.

The server is the OpenAI-compatible one of transformers. The chat template shows the model nothing
but how often it has spoken; so it learns in seconds, and what it says is still generated token by
token, parsed by the server, and carried over HTTP.
"""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.data.capture.mismatched_wheels import import_torchvision

HEAD = "<|im_start|>user\nturn "
TAIL = "<|im_end|>\n<|im_start|>assistant"
TEMPLATE = (
    HEAD
    + "{{ messages | selectattr('role', 'equalto', 'assistant') | list | length }}"
    + TAIL
    + "{{ '\\n' }}"  # a bare line end would be cut off at the end of a template
)
END = "<|im_end|>"
SPECIAL = ["<|im_start|>", END, "<|endoftext|>"]
MAX_STEPS = 600
STEPS_MORE = 80
"""For how many steps it must know its turns, so that rounding changes nothing."""


def said(text: str, calls: list[dict[str, Any]]) -> str:
    """Return the model's text of a turn: words, then calls of tools as Qwen's models write them."""
    parts = [
        "<tool_call>\n"
        + json.dumps({"name": call["tool"], "arguments": call["arguments"]})
        + "\n</tool_call>"
        for call in calls
    ]
    return "\n".join([text, *parts]) + END


def teach(folder: Path, turns: list[str]) -> bool:
    """Train a model until it says these turns word for word, and store it; whether it does."""
    import_torchvision()
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([*turns, *(f"turn {n}" for n in range(20))], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=END, pad_token="<|endoftext|>", chat_template=TEMPLATE
    )
    torch.manual_seed(0)
    llm = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=192,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=4096,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    llm.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)  # Qwen's own, which splits otherwise
    rows = [
        tokenizer(f"{HEAD}{number}{TAIL}\n{text}")["input_ids"] for number, text in enumerate(turns)
    ]
    width = max(map(len, rows))
    tokens = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
    labels = torch.where(tokens == tokenizer.pad_token_id, -100, tokens)
    optimizer = torch.optim.AdamW(llm.parameters(), lr=3e-3)
    heads = tokenizer(HEAD)["input_ids"]
    known_for = 0
    for _ in range(MAX_STEPS):
        out = llm(input_ids=tokens, attention_mask=(labels != -100).long(), labels=labels)
        guessed = out.logits[:, len(heads) : -1].argmax(-1)
        expected = labels[:, len(heads) + 1 :]
        known_for = known_for + 1 if ((guessed == expected) | (expected == -100)).all() else 0
        if known_for == STEPS_MORE:
            break
        out.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    llm.generation_config.do_sample = False
    llm.generation_config.max_new_tokens = 1024
    llm.save_pretrained(folder)
    return known_for > 0


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The model behind an OpenAI-compatible server on loopback; the block gets its address."""
    pytest.importorskip("accelerate", reason="`transformers serve` wants accelerate")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ready = "from passnet.data.capture.mismatched_wheels import import_torchvision as ready"
    code = f"{ready}; ready(); from transformers.cli.transformers import main; main()"
    words = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    log = (folder / "server.log").open("wb")
    server = subprocess.Popen([sys.executable, "-c", code, *words], stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()
        log.close()
