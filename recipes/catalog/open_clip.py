"""open_clip: pairs of an image and a text encoder, every packaged configuration."""

import tempfile
from typing import Any

from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, image, tokens

ADDS = "CLIP, SigLIP and CoCa: an image and a text encoder whose normalised features are compared"
PACKAGES = ("open_clip_torch", "timm", "transformers", "torchvision")

_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
_NLLB = {"vocab_size": 256206, "d_model": 1024, "encoder_attention_heads": 16, "decoder_layers": 1}

TEXT_ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta-base": ("roberta", _ROBERTA | {"vocab_size": 50265}),
    "xlm-roberta-base": ("xlm-roberta", _ROBERTA | {"vocab_size": 250002}),
    "xlm-roberta-large": ("xlm-roberta", _ROBERTA | {
        "vocab_size": 250002, "hidden_size": 1024, "num_hidden_layers": 24,
        "num_attention_heads": 16, "intermediate_size": 4096}),
    "google/mt5-base": ("mt5", {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12}),
    "google/mt5-xl": ("mt5", {"d_model": 2048, "d_ff": 5120, "num_layers": 24, "num_heads": 32}),
    "facebook/nllb-200-distilled-600M": (
        "m2m_100", _NLLB | {"encoder_layers": 12, "encoder_ffn_dim": 4096}),
    "facebook/nllb-200-distilled-1.3B": (
        "m2m_100", _NLLB | {"encoder_layers": 24, "encoder_ffn_dim": 8192}),
}  # fmt: skip
"""Text encoders that a configuration names by their place on a hub -> type and sizes of each."""


def names() -> list[str]:
    """Return all packaged configurations."""
    return sorted(import_with_torchvision("open_clip").list_models())


def build(name: str) -> Net:
    """Build both encoders, on one image and one text of the configured sizes."""
    open_clip = import_with_torchvision("open_clip")
    configuration = open_clip.get_model_config(name)
    if configuration is None:
        raise ValueError(f"no packaged configuration {name!r}")
    text, vision = configuration["text_cfg"], configuration["vision_cfg"]
    vocabulary, length = text.get("vocab_size", 49408), text.get("context_length", 77)
    separate = configuration.pop("custom_text", False) or "hf_model_name" in text
    net_class = open_clip.CustomTextCLIP if separate else open_clip.CLIP
    if "multimodal_cfg" in configuration:
        net_class = open_clip.CoCa
    if "timm_model_name" in vision:
        vision["timm_model_pretrained"] = False
    with tempfile.TemporaryDirectory() as folder:
        if "hf_model_name" in text:
            vocabulary = _write_text_config(text["hf_model_name"], folder)
            text |= {"hf_model_name": folder, "hf_model_pretrained": False}
        net = net_class(**configuration).eval()
    size = net.visual.image_size
    height, width = size if isinstance(size, (tuple, list)) else (size, size)
    args = (image(1, 3, height, width), tokens(vocabulary, 1, length))
    return Net(net, args, domain="multimodal", task="zero-shot-image-classification")


def _write_text_config(hub_name: str, folder: str) -> int:
    """Write a text configuration for reading without a hub; return its vocabulary size."""
    from transformers import AutoConfig

    family, sizes = TEXT_ENCODERS[hub_name]
    config = AutoConfig.for_model(family, **sizes)
    config.save_pretrained(folder)
    return config.vocab_size
