"""peft: small text and speech nets of transformers with the adapters of each way of tuning."""

from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.catalog import transformers as library
from passnet.data.capture.catalog.transformers import configs
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net

ADDS = "adapters beside weights: of low rank, rotations, Fourier and wavelet bases, prompts"
PACKAGES, LAYERS = ("peft", "transformers"), 2
BASES = [f"{base}Model" for base in (
    "Bert", "Roberta", "GPT2", "Llama", "Mistral", "Qwen2", "Gemma", "T5", "Bart", "OPT", "GPTNeoX",
    "Bloom", "DistilBert", "DebertaV2", "WavLM", "Wav2Vec2", "Hubert",
)]  # fmt: skip
SMALL = {
    "hidden_size": 128, "d_model": 128, "n_embd": 128, "dim": 128, "intermediate_size": 256,
    "vocab_size": 1000, "hidden_dim": 256, "d_ff": 256, "d_kv": 32, "head_dim": 32,
    "ffn_dim": 256, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256, "word_embed_proj_dim": 128,
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads",
                     "encoder_attention_heads", "decoder_attention_heads"), 4),
    "num_key_value_heads": 2, "num_conv_pos_embeddings": 16,
}  # fmt: skip
"""Widths, as far as a configuration has them."""

ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora": ("LoraConfig", {}), "dora": ("LoraConfig", {"use_dora": True}),
    "lora-bias": ("LoraConfig", {"lora_bias": True}), "adalora": ("AdaLoraConfig",
    {"total_step": 10}), "ia3": ("IA3Config", {}), "loha": ("LoHaConfig", {}),
    "lokr": ("LoKrConfig", {}), "oft": ("OFTConfig", {"oft_block_size": 8, "r": 0}),
    "boft": ("BOFTConfig", {"boft_block_size": 8}), "vera": ("VeraConfig", {"r": 8}),
    "fourier": ("FourierFTConfig", {"n_frequency": 100}),
    "vblora": ("VBLoRAConfig", {"num_vectors": 16, "vector_length": 32}),
    "miss": ("MissConfig", {"r": 8}), "randlora": ("RandLoraConfig", {"r": 8}),
    "shira": ("ShiraConfig", {"r": 4}), "c3a": ("C3AConfig", {"block_size": 32}),
    "road": ("RoadConfig", {}), "wave": ("WaveFTConfig", {"n_frequency": 100}),
    "delora": ("DeloraConfig", {}), "gralora": ("GraloraConfig", {"r": 8, "gralora_k": 2}),
    "osf": ("OSFConfig", {}),
}  # fmt: skip
"""Configurations of peft, on all linear layers."""


names = listed("peft", [f"{base}+{adapter}" for adapter in ADAPTERS for base in BASES])
"""Every base with every kind of adapter."""


def build(name: str) -> Net:
    """Build a net of two narrow layers with adapters."""
    base, _, adapter = name.partition("+")
    peft = import_with_torchvision("peft")
    kind, settings = row_of(ADAPTERS, adapter)
    net_class = getattr(library.import_transformers(), base)
    own = net_class.config_class().to_dict()
    config = net_class.config_class(**{key: SMALL[key] for key in SMALL.keys() & own.keys()})
    net = library.net_of(net_class, configs.reduce_layers(config, LAYERS)[0])
    tuned = getattr(peft, kind)(target_modules="all-linear", **settings)
    module = peft.get_peft_model(net.module, tuned).base_model.model
    return Net(module.eval(), net.args, net.kwargs, net.domain, net.task)
