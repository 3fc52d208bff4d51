"""torchtune: decoders of several families, whole or with adapters of low rank, in small widths."""

import importlib
import inspect
from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.net import Net, tokens

ADDS = "decoders that are tuned: families by hand, heads in groups, adapters of low rank on parts"
PACKAGES = ("torchtune", "torchao")
VOCABULARY, LENGTH = 1000, 64
FAMILIES = ("gemma", "gemma2", "llama2", "llama3", "llama3_1", "llama3_2", "mistral", "phi3",
            "qwen2")  # fmt: skip
USUAL: dict[str, Any] = {
    "vocab_size": VOCABULARY, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "head_dim": 32,
    "embed_dim": 128, "intermediate_dim": 256, "max_seq_len": 256, "lora_rank": 8,
    "lora_alpha": 16.0, "num_classes": 2, "lora_attn_modules": ["q_proj", "v_proj"],
}  # fmt: skip
HEADS = {"all-heads": {"num_kv_heads": 4}, "one-pair": {"num_kv_heads": 1}}
PARTS: dict[str, dict[str, Any]] = {
    "": {}, "-heads": {"lora_attn_modules": ["q_proj", "k_proj", "v_proj", "output_proj"]},
    "-mlp": {"apply_lora_to_mlp": True}, "-output": {"apply_lora_to_output": True},
}  # fmt: skip
ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora-classifier": ("lora_{}_classifier", {}),
    **{f"{form}{part}": ("lora_{}", own | {"use_dora": form == "dora"})
       for form in ("lora", "dora") for part, own in PARTS.items()},
}  # fmt: skip
FORMS = {
    "grouped": ("{}", {}), **{heads: ("{}", own) for heads, own in HEADS.items()},
    "classifier": ("{}_classifier", {}), **ADAPTERS,
    **{f"{form}+{heads}": (builder, own | HEADS[heads])
       for form, (builder, own) in ADAPTERS.items() for heads in HEADS},
}  # fmt: skip
"""Name of the builder, and settings."""


def _has(family: str, form: str) -> bool:
    if "classifier" in form:
        return family in ("llama2", "mistral")
    has_output = family not in ("gemma", "gemma2", "llama3_2", "qwen2")  # others share a weight
    return has_output or "-output" not in form


_ENTRIES = [f"{family}-{form}" for family in FAMILIES for form in FORMS if _has(family, form)]
names = listed("torchtune.models", _ENTRIES)
"""Every family in all forms that it has."""


def build(name: str) -> Net:
    """Build a decoder of two narrow layers on 64 tokens."""
    family, _, form = name.partition("-")
    builder, settings = row_of(FORMS, form)
    module = importlib.import_module(f"torchtune.models.{family}._component_builders")
    make = getattr(module, builder.format(family))
    own = inspect.signature(make).parameters
    net = make(**{key: value for key, value in (USUAL | settings).items() if key in own})
    task = "text-classification" if "classifier" in form else "text-generation"
    return Net(net.eval(), (tokens(VOCABULARY, 1, LENGTH),), domain="nlp", task=task)
