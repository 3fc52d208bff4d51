"""Settings of tiny decoders of transformers, and ids for them."""

from typing import Any

import torch

TINY: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": None,
}
IDS = torch.tensor([[5, 17, 3, 80, 41, 9, 33]])
