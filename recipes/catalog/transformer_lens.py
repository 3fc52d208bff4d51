"""transformer_lens: decoders with attention by einsum, one choice for each part of a layer."""

import itertools
from typing import Any

from passnet.data.capture.catalog import listed, unknown_entry
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, tokens

ADDS = "decoders whose attention is by einsum, in combinations of positions, norms, heads and MLPs"
PACKAGES = ("transformer-lens",)

VOCABULARY, LENGTH, LAYERS = 1000, 64, 2
SIZES = {"d_model": 256, "n_ctx": 128, "d_head": 64, "n_heads": 4, "d_vocab": VOCABULARY}
POSITIONS = ("standard", "rotary", "shortformer", "alibi")
NORMS = ("LN", "LNPre", "RMS", "RMSPre", "none")
ACTIVATIONS = ("gelu", "relu", "silu", "solu_ln", "gelu_new", "gelu_fast", "gelu_pytorch_tanh")
MLPS: dict[str, dict[str, Any]] = {
    "mlp": {}, "gated": {"gated_mlp": True}, "parallel": {"parallel_attn_mlp": True},
    "no-mlp": {"attn_only": True}, "parallel-gated": {"parallel_attn_mlp": True, "gated_mlp": True},
}  # fmt: skip
ATTENTIONS: dict[str, dict[str, Any]] = {
    "causal": {}, "both-ways": {"attention_dir": "bidirectional"},
    "local": {"use_local_attn": True, "window_size": 16, "attn_types": ["global", "local"]},
    "grouped": {"n_key_value_heads": 2}, "one-pair": {"n_key_value_heads": 1},
    "qk-norm": {"use_qk_norm": True}, "capped": {"attn_scores_soft_cap": 30.0},
    "head-results": {"use_attn_result": True}, "split-inputs": {"use_split_qkv_input": True},
    "norm-after": {"use_normalization_before_and_after": True, "output_logits_soft_cap": 30.0},
    "by-layer": {"scale_attn_by_inverse_layer_idx": True}, "unscaled": {"use_attn_scale": False},
    "embedding-norm": {"post_embedding_ln": True},
    "ungrouped": {"n_key_value_heads": 2, "ungroup_grouped_query_attention": True},
}  # fmt: skip
_CHOICES = list(itertools.product(POSITIONS, NORMS, MLPS, ATTENTIONS))
_STEP = 11
"""Each eleventh combination: prime to all numbers of choices, so that all pairs of these come."""

_ENTRIES = {"-".join(choices): choices for choices in _CHOICES[::_STEP]}
names = listed("transformer_lens", _ENTRIES, import_with_torchvision)
"""A fixed part of all combinations of positions, norms, MLPs and attentions."""


def build(name: str) -> Net:
    """Build a decoder of two layers for 64 tokens; activations take turns."""
    if name not in _ENTRIES:
        raise ValueError(unknown_entry(name, _ENTRIES))
    module = import_with_torchvision("transformer_lens")
    position, norm, mlp, attention = _ENTRIES[name]
    activation = ACTIVATIONS[list(_ENTRIES).index(name) % len(ACTIVATIONS)]
    config = module.HookedTransformerConfig(
        n_layers=LAYERS, **SIZES, positional_embedding_type=position, act_fn=activation,
        normalization_type=None if norm == "none" else norm, rotary_dim=64, device="cpu",
        **MLPS[mlp], **ATTENTIONS[attention],
    )  # fmt: skip
    net = module.HookedTransformer(config)
    return Net(net.eval(), (tokens(VOCABULARY, 1, LENGTH),), domain="nlp", task="text-generation")
