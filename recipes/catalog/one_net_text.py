"""one_net_text: language models of packages that hold one paper's net each, with their options."""

import importlib
import inspect
from typing import Any

from passnet.data.capture.catalog import row_of
from passnet.data.capture.net import Net, tokens

ADDS = "language models of one paper each: attention by kernels, hashes, clusters, blocks, memories"

VOCABULARY, LENGTH = 1000, 256
USUAL = {"num_tokens": VOCABULARY, "dim": 128, "depth": 2, "heads": 4, "max_seq_len": LENGTH,
         "seq_len": LENGTH}  # fmt: skip
MEGABYTE = {"depth": (2, 1), "dim": (128, 64), "max_seq_len": (64, 4)}
WINDOWS = {"hierarchies": (1, 2), "window_sizes": (32, None)}
NETS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "performer-pytorch": ("PerformerLM", "causal generalized_attention use_scalenorm use_rezero "
                          "ff_glu no_projection tie_embed shift_tokens", {}),
    "linformer": ("LinformerLM", "one_kv_head share_kv", {"k": 64}),
    "reformer-pytorch": ("ReformerLM", "causal ff_glu use_scale_norm use_rezero use_full_attn "
                         "one_value_head axial_position_emb absolute_position_emb", {}),
    "routing-transformer": ("RoutingTransformerLM", "causal ff_glu use_scale_norm use_rezero", {}),
    "sinkhorn-transformer": ("SinkhornTransformerLM", "causal ff_glu use_simple_sort_net", {}),
    "linear-attention-transformer": ("LinearAttentionTransformerLM", "causal ff_glu attend_axially "
                                     "use_rotary_emb shift_tokens", {}),
    "g-mlp-pytorch": ("gMLP", "causal circulant_matrix attn_dim shift_tokens", {"heads": 1}),
    "flash-pytorch": ("FLASHTransformer", "causal laplace_attn_fn", {"group_size": 64}),
    "compressive-transformer-pytorch": ("CompressiveTransformer", "ff_glu", {}),
    "hourglass-transformer-pytorch": ("HourglassTransformerLM", "",
                                      {"depth": (1, 2, 1), "shorten_factor": 2}),
    "h-transformer-1d": ("HTransformer1D", "causal shift_tokens", {"block_size": 32}),
    "block-recurrent-transformer-pytorch": ("BlockRecurrentTransformer", "all_layers_qk_rmsnorm "
                                            "use_compressed_mem", {"block_width": 64}),
    "simple-hierarchical-transformer": ("HierarchicalTransformer", "hierarchy_merge_all", WINDOWS),
    "MEGABYTE-pytorch": ("MEGABYTE", "rel_pos pos_emb", MEGABYTE),
    "recurrent-memory-transformer-pytorch": ("RecurrentMemoryTransformer", "rotary_pos_emb "
                                             "enhanced_xl_recurrence", {"num_memory_tokens": 8}),
    "token-shift-gpt": ("TokenShiftGPT", "", {}),
    "rela-transformer": ("ReLATransformer", "relu_squared no_ff", {}),
    "mega-pytorch": ("Mega", "pre_norm causal laplacian_attn_fn", {}),
    "gated-state-spaces-pytorch": ("GatedStateSpacesLM", "", {"dss_kernel_N": 64}),
    "infini-transformer-pytorch": ("InfiniTransformer", "use_mem_delta_rule", {}),
    "perceiver-pytorch": ("PerceiverLM", "decoder_ff", {"latent_dim": 64}),
    "perceiver-ar-pytorch": ("PerceiverAR", "", {"cross_attn_seq_len": 64}),
    "local-attention": ("LocalTransformer", "use_xpos use_dynamic_pos_bias",
                        {"local_attn_window_size": 64}),
    "memory-transformer-xl": ("MemoryTransformerXL", "ff_glu", {}),
    "palm-pytorch": ("PaLM", "", {}), "tranception-pytorch": ("Tranception", "", {}),
}  # fmt: skip
"""Class, switches that are turned on one at a time, and settings besides the usual ones."""

PACKAGES = tuple(NETS)


def names() -> list[str]:
    """Return each package's net as it is, and with each of its switches."""
    return [f"{net}+{switch}".rstrip("+") for net in NETS for switch in ("", *NETS[net][1].split())]


def build(name: str) -> Net:
    """Build a net of two layers on 256 tokens."""
    package, _, switch = name.partition("+")
    class_name, _, own = row_of(NETS, package)
    make = getattr(importlib.import_module(package.replace("-", "_")), class_name)
    params = inspect.signature(make).parameters
    usual = {key: value for key, value in USUAL.items() if key in params}
    net = make(**usual | own | ({switch: 64 if switch == "attn_dim" else True} if switch else {}))
    return Net(net.eval(), (tokens(VOCABULARY, 1, LENGTH),), domain="nlp", task="text-generation")
