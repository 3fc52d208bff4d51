"""x_transformers: transformers with one or two options each, named after these."""

import importlib
from typing import Any

from passnet.data.capture.catalog import listed, unknown_entry
from passnet.data.capture.net import Net, NetInput, floats, image, integers, tokens

ADDS = "options of attention, positions, norms and residuals that papers proposed, one at a time"
PACKAGES = ("x-transformers",)

VOCABULARY = 8192
LENGTH = 256
DIM = 512
SHAPE: dict[str, Any] = {"dim": DIM, "depth": 4}
TEXT = {"num_tokens": VOCABULARY, "max_seq_len": LENGTH}
IMAGE_SIZE = 224

OPTIONS: dict[str, str | dict[str, Any]] = {
    "plain": "", "flash": "attn_flash", "rmsnorm": "use_rmsnorm",
    "simple-rmsnorm": "use_simple_rmsnorm", "scalenorm": "use_scalenorm",
    "dynamic-tanh": "use_dynamic_tanh", "derf": "use_derf", "sandwich-norm": "sandwich_norm",
    "pre-and-post-norm": "pre_and_post_norm", "post-norm": {"pre_norm": False}, "glu": "ff_glu",
    "swiglu": "ff_glu ff_swish", "swiglu-no-bias": "ff_glu ff_swish ff_no_bias use_rmsnorm",
    "glu-mult-bias": "ff_glu ff_glu_mult_bias", "relu-squared": "ff_relu_squared",
    "solu": "ff_solu", "ff-post-act-norm": "ff_post_act_ln", "rotary": "rotary_pos_emb",
    "rotary-xpos": "rotary_pos_emb rotary_xpos", "polar": "polar_pos_emb",
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 4},
    "data-dependent-alibi": "attn_data_dependent_alibi", "t5-bias": "rel_pos_bias",
    "dynamic-bias": "dynamic_pos_bias",
    "dynamic-bias-log": "dynamic_pos_bias dynamic_pos_bias_log_distance",
    "projected-bias": "attn_use_rel_proj_pos_bias", "cope": "attn_use_cope",
    "memory-kv": {"attn_num_mem_kv": 16}, "zero-kv": "attn_add_zero_kv",
    "learned-sink": "attn_head_learned_sink",
    "talking-heads": "attn_pre_talking_heads attn_post_talking_heads",
    "head-scale": "attn_head_scale", "topk": {"attn_sparse_topk": 8},
    "attn-on-attn": "attn_on_attn", "gate-values": "attn_gate_values",
    "gate-value-heads": "attn_gate_value_heads", "output-gate": "attn_output_gate",
    "swiglu-values": "attn_swiglu_values", "qk-norm": "attn_qk_norm attn_qk_norm_dim_scale",
    "qk-rmsnorm": "attn_qk_rmsnorm", "value-rmsnorm": "attn_value_rmsnorm",
    "l2-distance": "attn_l2_distance", "sigmoid": "attn_sigmoid", "selective": "attn_selective",
    "cog-signed": "attn_cog_signed", "softclamp": "attn_softclamp_logits", "laser": "attn_laser",
    "multi-query": "attn_one_kv_head", "grouped-query": {"attn_kv_heads": 2},
    "latent-kv": {"attn_use_latent_kv": True, "attn_dim_latent_kv": 128},
    "latent-q-kv": {"attn_use_latent_q": True, "attn_dim_latent_q": 128,
                    "attn_use_latent_kv": True, "attn_dim_latent_kv": 128},
    "orthogonal-values": "attn_orthog_projected_values", "max-past": {"attn_max_attend_past": 64},
    "residual-attn": "residual_attn", "value-residual": "add_value_residual",
    "gate-residual": "gate_residual", "orthogonal-residual": "orthog_residual",
    "scale-residual": "scale_residual", "layerscale": "use_layerscale",
    "hyper-connections": {"num_residual_streams": 4},
    "hyper-connections-qkv": {"num_residual_streams": 4, "qkv_receive_diff_residuals": True},
    "aggregated-residuals": "attn_aggregated_residuals", "integrate-layers": "integrate_layers",
    "unet-skips": "unet_skips", "reinject-input": "reinject_input learned_reinject_input_gate",
    "shift-tokens": {"shift_tokens": 1}, "macaron": "macaron",
    "sandwich-order": {"sandwich_coef": 2}, "par-order": {"par_ratio": 4},
    "weight-tied": "weight_tie_layers", "softclamp-output": "softclamp_output",
    "only-attention": "only_attn",
    "llama": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True, "ff_no_bias": True,
              "rotary_pos_emb": True, "attn_kv_heads": 2, "attn_flash": True},
    "gemma": "use_rmsnorm pre_and_post_norm ff_glu rotary_pos_emb attn_softclamp_logits "
             "softclamp_output attn_one_kv_head",
}  # fmt: skip
"""Options of the layers of a decoder on tokens: switched on, or with values."""

ENCODERS = ("plain", "flash", "t5-bias", "rotary", "sandwich-norm", "qk-norm", "talking-heads")
"""Keys of `OPTIONS` that are an encoder on tokens, too."""

HEADS: dict[str, str | dict[str, Any]] = {
    "memory-tokens": {"num_memory_tokens": 20}, "sinusoidal": "scaled_sinu_pos_emb",
    "no-positions": {"use_abs_pos_emb": False}, "l2norm-embed": "l2norm_embed",
    "post-emb-norm": "post_emb_norm", "tie-embedding": "tie_embedding",
    "mixture-of-softmax": "mixture_of_softmax",
    "sigsoftmax": "mixture_of_softmax sigsoftmax_logits", "two-heads": {"num_output_heads": 2},
    "cls": {"use_cls_token": True, "logits_dim": 10},
    "average-pool": {"average_pool_embed": True, "logits_dim": 10},
    "attention-pool": {"attn_pool": True, "logits_dim": 10}, "deep-embed": "ff_deep_embed",
}  # fmt: skip
"""Options around an encoder on tokens, as in `OPTIONS`."""

VITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "registers": ({}, {"num_register_tokens": 4}),
    "glu-residual": ({"ff_glu": True, "use_rmsnorm": True, "residual_attn": True}, {}),
}
"""Options of the layers of an image classifier, and around them."""

STACKS: dict[str, dict[str, Any]] = {
    "cross": {},
    "adaptive-norm": {"use_adaptive_layernorm": True, "use_adaptive_layerscale": True},
    "adaptive-rmsnorm": {"use_adaptive_rmsnorm": True, "use_adaptive_layerscale": True},
}
"""Options of layers without embeddings, which get a context or a condition."""

POSITIONS = ("rotary", "rotary-xpos", "polar", "t5-bias", "dynamic-bias", "projected-bias", "cope")
ATTENTIONS = (
    "memory-kv", "zero-kv", "learned-sink", "talking-heads", "head-scale", "topk", "attn-on-attn",
    "gate-values", "gate-value-heads", "output-gate", "swiglu-values", "qk-norm", "qk-rmsnorm",
    "value-rmsnorm", "l2-distance", "sigmoid", "selective", "cog-signed", "softclamp", "laser",
    "multi-query", "grouped-query", "latent-kv", "orthogonal-values", "residual-attn",
)  # fmt: skip
NORMS = ("rmsnorm", "simple-rmsnorm", "scalenorm", "dynamic-tanh", "derf", "sandwich-norm",
         "pre-and-post-norm", "post-norm")  # fmt: skip
FEED_FORWARDS = ("glu", "swiglu", "glu-mult-bias", "relu-squared", "solu", "ff-post-act-norm")
RESIDUALS = ("gate-residual", "scale-residual", "layerscale", "hyper-connections", "unet-skips",
             "reinject-input", "shift-tokens", "macaron", "par-order")  # fmt: skip
PAIRED = ((POSITIONS, ATTENTIONS), (NORMS, FEED_FORWARDS), (RESIDUALS, NORMS))
PAIRS = [f"{first}+{second}" for some, others in PAIRED for first in some for second in others]
"""Two options of a decoder at once, of different parts, in two layers."""

WRAPPERS = ("continuous", "translation", "xval", "multi-input")
"""Nets that exist once."""

_KINDS = {
    "decoder": OPTIONS, "encoder": ENCODERS, "wrapper": HEADS, "vit": VITS, "layers": STACKS,
    "pair": PAIRS,
}  # fmt: skip
_ENTRIES = [f"{kind}-{option}" for kind, options in _KINDS.items() for option in options]
names = listed("x_transformers", [*_ENTRIES, *WRAPPERS], importlib.import_module)
"""Decoders, encoders, encoders with something around them, and nets for other inputs."""


def build(name: str) -> Net:
    """Build a small transformer with the option that the entry is named after."""
    if name not in names():
        raise ValueError(unknown_entry(name, names()))
    library = importlib.import_module("x_transformers")
    kind, _, option = name.partition("-")
    if name in WRAPPERS:
        return _wrapper(library, name)
    if kind == "vit":
        return _vit(library, *VITS[option])
    if kind == "layers":
        return _layers(library, STACKS[option])
    layers = SHAPE | ({"depth": 2} if kind == "pair" else {})
    for part in option.split("+") if kind != "wrapper" else ():
        layers |= _values(OPTIONS[part])
    around = _values(HEADS[option] if kind == "wrapper" else "")
    attn_layers = (library.Encoder if kind in ("encoder", "wrapper") else library.Decoder)(**layers)
    net = library.TransformerWrapper(**TEXT, attn_layers=attn_layers, **around)
    task = "fill-mask" if kind in ("encoder", "wrapper") else "text-generation"
    if "logits_dim" in around:
        task = "text-classification"
    return Net(net.eval(), (tokens(VOCABULARY, 1, LENGTH),), domain="nlp", task=task)


def _values(options: str | dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(options.split(), True) if isinstance(options, str) else options


def _vit(library: Any, layers: dict[str, Any], around: dict[str, Any]) -> Net:
    around = around | {"image_size": IMAGE_SIZE, "patch_size": 16, "num_classes": 1000}
    net = library.ViTransformerWrapper(attn_layers=library.Encoder(**SHAPE, **layers), **around)
    picture = image(1, 3, IMAGE_SIZE, IMAGE_SIZE)
    return Net(net.eval(), (picture,), domain="cv", task="image-classification")


def _layers(library: Any, options: dict[str, Any]) -> Net:
    sequence = floats(1, LENGTH, DIM, axes=("batch", "sequence", str(DIM)))
    if options:
        net = library.Encoder(**SHAPE, dim_condition=DIM, **options)
        kwargs = {"condition": floats(1, DIM, axes=("batch", str(DIM)))}
    else:
        net = library.CrossAttender(**SHAPE)
        kwargs = {"context": floats(1, 64, DIM, axes=("batch", "context", str(DIM)))}
    return Net(net.eval(), (sequence,), kwargs, "other", "feature-extraction")


def _wrapper(library: Any, name: str) -> Net:
    text = tokens(VOCABULARY, 1, LENGTH)
    if name == "continuous":
        around = {"dim_in": 32, "dim_out": 100, "max_seq_len": LENGTH}
        layers = library.Encoder(**SHAPE)
        net = library.ContinuousTransformerWrapper(**around, attn_layers=layers)
        series = floats(1, LENGTH, 32, axes=("batch", "sequence", "32"))
        return Net(net.eval(), (series,), domain="other", task="time-series-forecasting")
    if name == "translation":
        layers = library.Decoder(**SHAPE, cross_attend=True)
        net = library.TransformerWrapper(**TEXT, attn_layers=layers)
        source = floats(1, 64, DIM, axes=("batch", "source", str(DIM)))
        return Net(net.eval(), (text,), {"context": source}, "nlp", "translation")
    layers = library.Decoder(**SHAPE)
    if name == "xval":
        net = library.XValTransformerWrapper(**TEXT, numerical_token_id=3, attn_layers=layers)
        args = (text, floats(1, LENGTH, axes=("batch", "sequence")))
        return Net(net.eval(), args, domain="nlp", task="text-generation")
    sizes = {"note": 128, "duration": 64}
    net = library.MultiInputTransformerWrapper(**TEXT | {"num_tokens": sizes}, attn_layers=layers)
    events = NetInput({key: integers(size, 1, LENGTH).value for key, size in sizes.items()})
    return Net(net.eval(), (events,), domain="audio", task="music-generation")
