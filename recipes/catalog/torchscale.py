"""torchscale: encoders, decoders, pairs of these and retention, with pairs of their options."""

import importlib
from itertools import combinations
from typing import Any

from torch import nn

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, tokens

ADDS = "transformers with norms inside parts, deep norms, extrapolated positions, and retention"
PACKAGES = ("torchscale", "fairscale")
VOCABULARY, LENGTH, WIDTH = 1000, 64, 128
SIZES = {
    "vocab_size": VOCABULARY,
    **{f"{part}_{key}": value for part in ("encoder", "decoder") for key, value in {
        "embed_dim": WIDTH, "attention_heads": 4, "ffn_embed_dim": 256, "layers": 2,
        "retention_heads": 2, "value_embed_dim": 256}.items()},
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "plain-norm": {"subln": False}, "deep-norm": {"deepnorm": True, "subln": False},
    "xpos": {"xpos_rel_pos": True}, "buckets": {"rel_pos_buckets": 32, "max_rel_pos": 128},
    "embedding-norm": {"layernorm_embedding": True}, "relu": {"activation_fn": "relu"},
    "swish": {"activation_fn": "swish"}, "scaled": {"no_scale_embedding": False},
    "post-norm": {"encoder_normalize_before": False, "decoder_normalize_before": False,
                  "subln": False},
    "chunks": {"chunkwise_recurrent": True, "recurrent_chunk_size": 16},
}  # fmt: skip
KINDS = {
    "encoder": ("Encoder", "encoder", "fill-mask"), "decoder": ("Decoder", "decoder",
    "text-generation"), "both": ("EncoderDecoder", "encoder_decoder", "translation"),
    "retention": ("RetNetDecoder", "retnet", "text-generation"),
}  # fmt: skip
"""Class, module and task."""

_NO_RETENTION = {"xpos", "buckets", "plain-norm"}
_CHOICES = [(), *((one,) for one in OPTIONS), *combinations(OPTIONS, 2)]
_ENTRIES = [
    "+".join((kind, *choice)) for kind in KINDS for choice in _CHOICES
    if not ({*choice} & _NO_RETENTION if kind == "retention" else "chunks" in choice)
]  # fmt: skip
names = listed("torchscale.architecture.config", _ENTRIES, import_with_torchvision)
"""Each kind with none, one, and two of its options."""


def build(name: str) -> Net:
    """Build a net of two narrow layers a stack on 64 tokens."""
    kind, *choice = name.split("+")
    class_name, module, task = row_of(KINDS, kind)
    own = {key: value for option in choice for key, value in row_of(OPTIONS, option).items()}
    package = import_with_torchvision("torchscale.architecture.config")
    config = getattr(package, f"{class_name.replace('NetDecoder', 'Net')}Config")
    net_class = getattr(importlib.import_module(f"torchscale.architecture.{module}"), class_name)
    stacks = ("decoder_", "encoder_") if kind == "both" else ("",)
    embeddings = {f"{stack}embed_tokens": nn.Embedding(VOCABULARY, WIDTH) for stack in stacks}
    net = net_class(config(**SIZES, **own), **embeddings)
    words = tuple(tokens(VOCABULARY, 1, LENGTH) for _ in embeddings)
    return Net(net.eval(), words, domain="nlp", task=task)
