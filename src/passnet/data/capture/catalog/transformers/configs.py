"""Configurations of transformers: settings that defaults lack or misfit, and fewer layers."""

import re
from typing import Any

_ROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 10000.0}
_HEAD_128: dict[str, Any] = {"head_dim": 128}
_HALF_ROTARY: dict[str, Any] = {
    "rope_parameters": {**_ROPE, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}
}
_TILED_IMAGE: dict[str, Any] = {"image_size": 896, "patch_size": 14}
_ONE_DENSE: dict[str, Any] = {
    "num_experts_per_tok": 6, "mlp_layer_types": ["dense"] + ["sparse"] * 31,
}  # fmt: skip
_QUERYING: dict[str, Any] = {
    "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14,
    "num_key_value_heads": 2,
}  # fmt: skip
_WIDE_OMNI: dict[str, Any] = {"num_attention_heads": 32, "head_dim": 128}
_SMALL_TEXT: dict[str, Any] = {
    "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 16,
    "num_key_value_heads": 8,
}  # fmt: skip
_SMALL_STEP: dict[str, Any] = {
    "sliding_window": 512, "hidden_size": 1024, "intermediate_size": 2048,
    "num_attention_heads": 8, "num_key_value_heads": 4, "moe_intermediate_size": 512,
    "share_expert_dim": 512, "n_routed_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip
_INTRACLASS: dict[str, Any] = {
    "intraclass_block_config": {
        **dict.fromkeys(("reduce_channel", "return_channel"), [1, 1, 0]),
        **{f"{name}_{size}ratio": [[height, width], [1, 1], [height // 2, width // 2]]
           for size, k in {"long": 7, "mid": 5, "short": 3}.items()
           for name, height, width in (("vertical_long_to_small_conv", k, 1),
               ("horizontal_small_to_long_conv", 1, k), ("symmetric_conv_long", k, k))},
    },
    "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2],
}  # fmt: skip
"""Kernel, stride and padding of each convolution."""

_TEXT_PARTS: dict[str, dict[str, Any]] = {
    "hunyuan_vl": {"head_dim": 128, "rope_parameters": {**_ROPE, "mrope_section": [16] * 4}},
    "diffusion_gemma": {"num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704},
    "glm4v": _HALF_ROTARY,
    "glm4v_moe": {**_HALF_ROTARY, **_HEAD_128},
    "glm_image": _HALF_ROTARY,
    "cohere_compass": {"rope_parameters": {"full_attention": _ROPE}},
    "qwen4_exp": {"indexer_n_heads": 16, "indexer_kv_heads": 1, "indexer_head_dim": 256,
                  "indexer_budget": 2048, "indexer_compress_ratio": 16},
    "qwen3_omni_moe_talker": {"shared_expert_intermediate_size": 768},
    "glm5_next": {"hidden_size": 1024, "intermediate_size": 2048, "moe_intermediate_size": 512,
                  "num_attention_heads": 8, "num_key_value_heads": 8, "n_routed_experts": 8,
                  "num_experts_per_tok": 2, "q_lora_rank": 512, "index_n_heads": 8,
                  "linear_num_heads": 8},
}  # fmt: skip
"""Families whose text part is its own family, with the same settings for both."""

_SETTINGS: dict[str, dict[str, Any]] = {
    **{f"{family}_text": settings for family, settings in _TEXT_PARTS.items()},
    **{family: {"text_config": settings} for family, settings in _TEXT_PARTS.items()},
    "ReformerModelWithLMHead": {"is_decoder": True},
    **dict.fromkeys(("Blip2ForImageTextRetrieval", "Blip2TextModelWithProjection"),
                    {"qformer_config": {"use_qformer_text_input": True}}),
    **dict.fromkeys(("PerceiverForImageClassificationFourier",
                     "PerceiverForImageClassificationConvProcessing"),
                    {"num_cross_attention_heads": 1}),
    "HieraForPreTraining": {"decoder_hidden_size": 512, "decoder_depth": 4,
                            "decoder_num_heads": 16},
    "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0}},
    "Pix2StructTextModel": {"initializer_range": 0.02},
    "T5GemmaEncoderModel": {"is_encoder_decoder": False},
    **dict.fromkeys(("Wav2Vec2BertForCTC", "wav2vec2-conformer"), {"vocab_size": 32}),
    "GraniteMoeHybridForCausalLM": {
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 8},
    "BeitForSemanticSegmentation": {"out_indices": [3, 5, 7, 11]},
    "BridgeTowerForContrastiveLearning": {"contrastive_hidden_size": 512,
                                          "logit_scale_init_value": 2.6592},
    "PerceiverForOpticalFlow": {"d_latents": 512, "num_cross_attention_heads": 1,
                                "num_latents": 2048, "num_self_attention_heads": 16},
    **dict.fromkeys(("T5ForSequenceClassification", "MT5ForSequenceClassification"),
                    {"decoder_start_token_id": 0}),
    "ViltForImagesAndTextClassification": {"num_images": 2},
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"),
                    {"prediction_length": 24}),
    "xmod": {"default_language": "en_XX"},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
              "n_group": 1, "topk_group": 1},
    "aya_vision": {"vision_config": {"model_type": "siglip_vision_model", "image_size": 384,
                                     "num_attention_heads": 16}},
    "gemma3": {"vision_config": _TILED_IMAGE},
    **dict.fromkeys(("idefics3", "smolvlm"), {"vision_config": {"image_size": 256}}),
    **dict.fromkeys(("nemotron", "moonshine_streaming"), {"num_key_value_heads": 8}),
    "t5gemma2": {"encoder": {"vision_config": _TILED_IMAGE}},
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}, "vision_config": _TILED_IMAGE},
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral"), _HEAD_128),
    "glm46v": {"text_config": _HALF_ROTARY},
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention", "conv"] * 8},
    "deepseek_v2": {"num_experts_per_tok": 6},
    "deepseek_ocr2_text": _ONE_DENSE,
    "deepseek_ocr2_vision": {"encoder_config": _QUERYING},
    "deepseek_ocr2": {"text_config": _ONE_DENSE, "vision_config": {"encoder_config": _QUERYING}},
    "granite4_vision": {"deepstack_layer_map": [[-2, 0], [-1, 1]], "downsample_rate": "4/8",
                        "spatial_target_layers": [0, 1, 2, 3]},
    "chameleon": {"vocabulary_map": {"<image>": 8711}},
    "emu3": {"vocabulary_map": {"<image>": 151851, "<|extra_200|>": 151846}},
    "dbrx": {"attn_config": {"clip_qkv": 8.0, "rope_theta": 500000.0}},
    **dict.fromkeys(("pp_ocrv5_server_det", "pp_ocrv6_medium_det"), _INTRACLASS),
    "pp_doclayout_v2": {"class_thresholds": [0.5] * 25, "class_order": list(range(25))},
    "sapiens2": {"head_config": {
        "upsample_out_channels": [768, 768], "upsample_kernel_sizes": [4, 4],
        "conv_out_channels": [768, 768], "conv_kernel_sizes": [1, 1]}},
    "lw_detr": {"projector_scale_factors": [1.0]},
    "rf_detr": {"backbone_config": {
        "model_type": "rf_detr_dinov2", "num_attention_heads": 6, "hidden_size": 384,
        "num_register_tokens": 0, "image_size": 560,
        "out_features": ["stage2", "stage5", "stage8", "stage11"]}},
    "qwen3_omni_moe_text": _WIDE_OMNI,
    "qwen3_omni_moe_thinker": {"text_config": _WIDE_OMNI, "vision_start_token_id": 151652},
    "qwen2_5_omni_thinker": {"vision_start_token_id": 151652},
    "step3p5": _SMALL_STEP,
    "step3p7": {"text_config": _SMALL_STEP},
    "mllama": {"vision_config": {"intermediate_layers_indices": [0, 1, 2, 3],
                                 "vision_output_dim": 6400}},
    "depth_pro": {"intermediate_hook_ids": [3, 1]},
    "vitmatte": {"hidden_size": 768},
    "llama4_vision_model": {"hidden_size": 1408},
    "janus": {"vision_config": {"projection_dim": 4096}},
    "ovis2": {"hidden_size": 4096},
    **dict.fromkeys(("blip-2", "instructblip"), {"image_token_index": 50265}),
    "instructblipvideo": {"video_token_index": 50265},
    "voxtral": {"audio_token_id": 24, "text_config": {**_SMALL_TEXT, "head_dim": 128}},
    **dict.fromkeys(("qwen3_vl", "cosmos3_omni"), {"text_config": _SMALL_TEXT}),
    "qwen3_vl_moe": {"text_config": {"num_experts": 8}},
    "qwen2_vl": {"vision_config": {"hidden_size": 8192}},
    "longcat_flash": {"hidden_size": 1024, "num_attention_heads": 8, "ffn_hidden_size": 2048,
                      "expert_ffn_hidden_size": 512, "n_routed_experts": 8, "zero_expert_num": 2,
                      "moe_topk": 2},
    "TimmBackbone": {"backbone": "resnet50"},
    "nllb-moe": {"num_experts": 4},
    "perception_lm": {"vision_config": {
        "architecture": "vit_pe_core_large_patch14_336",
        "model_args": {"embed_dim": 1024, "img_size": [336, 336], "global_pool": "",
                       "use_post_transformer_norm": False}}},
}  # fmt: skip
"""Settings of classes, or families, whose defaults do not fit each other or are None."""

WHOLE = frozenset({"seggpt"})
"""Families whose other settings require all layers."""


def required_settings(name: str, config_class: Any) -> dict[str, Any]:
    """Return the settings that the configuration of a class of nets needs."""
    return _SETTINGS.get(name) or _SETTINGS.get(config_class.model_type, {})


MAX_LAYERS = 4
"""The layers of each stack; later ones would repeat them."""

_DEPTHS = {
    "num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "n_layers", "num_layers",
    "num_encoder_layers", "num_decoder_layers", "depth", "depths", "num_attention_layers",
    "num_blocks", "num_hidden_groups", "encoder_num_layers", "decoder_num_layers",
    "encoder_num_hidden_layers", "decoder_num_hidden_layers", "num_stack_layers", "layers",
    "encoder_depth", "decoder_depth", "num_block_records", "speech_encoder_layers",
    "t2u_encoder_layers", "t2u_decoder_layers", "num_layers_per_stage", "num_encoder_blocks_layers",
    "l_layers", "x_layers", "r_layers", "context_layers", "num_mtp_layers",
}  # fmt: skip
"""Settings that hold the number of layers of a stack, or a list of them for its stages."""

_DERIVED = {"stage_names", "out_features", "_out_features", "hybrid_layer_ids"}
"""Settings that follow from the number of layers."""


def match_widths(config: Any) -> tuple[str, ...]:
    """Set the vision part's output width to the text's, in place; return the changes."""
    vision = getattr(config, "vision_config", None)
    width = getattr(vision, "out_hidden_size", None)
    if vision is None or width is None:
        return ()
    text_width = getattr(config.get_text_config(), "hidden_size", None)
    if text_width is None or width == text_width:
        return ()
    vision.out_hidden_size = text_width
    return (f"vision_config.out_hidden_size {width} -> {text_width}",)


def reduce_layers(config: Any, most: int = MAX_LAYERS) -> tuple[Any, tuple[str, ...]]:
    """Return a configuration with at most `most` layers a stack, and the changes."""
    settings = config.to_dict()
    changes: list[str] = []
    reduce_settings(settings, changes, most=most)
    return (type(config).from_dict(settings) if changes else config), tuple(changes)


def reduce_settings(
    settings: dict[str, Any], changes: list[str], prefix: str = "", most: int = MAX_LAYERS
) -> None:
    """Reduce the depth in the settings of a configuration and its parts, in place."""
    depths: dict[int, int] = {}
    stages = {len(settings[key]) for key in _DEPTHS if isinstance(settings.get(key), (list, tuple))}
    for key, value in list(settings.items()):
        if isinstance(value, dict) and key.endswith("config"):
            reduce_settings(value, changes, f"{prefix}{key}.", most)
        if key not in _DEPTHS or (isinstance(value, int) and value in stages):
            continue
        shorter = _at_most(value, most)
        if shorter == value:
            continue
        settings[key] = shorter
        changes.append(f"{prefix}{key} {value} -> {shorter}")
        if isinstance(value, int):
            depths[value] = shorter
    for old, new in sorted(depths.items()):
        _shorten_lists(settings, old, new)
    if depths:
        for key in _DERIVED:
            settings.pop(key, None)
        if settings.get("num_kv_shared_layers"):  # there are too few left to share
            changes.append(f"{prefix}num_kv_shared_layers {settings['num_kv_shared_layers']} -> 0")
            settings["num_kv_shared_layers"] = 0
    for key, value in settings.items():
        if "feature_layer" in key and changes:  # of a part; 0 is what comes before the layers
            settings[key] = _within_layers(value, most)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _within_layers(value: Any, most: int) -> Any:
    """Clamp layer numbers, also those from the end, to the remaining layers."""
    if isinstance(value, (list, tuple)):
        within = [_within_layers(layer, most) for layer in value]
        if len(set(within)) == len(set(value)) or len(value) > most:
            return within
        return list(range(most - len(value), most))
    return max(-most, min(most - 1, value)) if _is_number(value) else value


def _at_most(value: Any, most: int) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(depth, int) for depth in value):
        return type(value)(min(depth, most) for depth in value)
    return min(value, most) if _is_number(value) else value


def _shorten_lists(settings: dict[str, Any], old: int, new: int) -> None:
    """Shorten the lists that go with a stack of `old` layers to `new`."""
    lists = {key: value for key, value in settings.items() if isinstance(value, (list, tuple))}
    per_layer = {key: value for key, value in lists.items() if len(value) == old}
    layers = _remaining_layers(per_layer, old, new)
    for key, value in lists.items():
        if not value or key in _DERIVED or key in _DEPTHS:
            continue
        numbers = value if all(map(_is_number, value)) else []
        if key in per_layer:
            settings[key] = [value[layer] for layer in layers]
        elif re.search(r"ind(ex|ic)|idx|layers", key) and max(numbers, default=-1) >= new:
            settings[key] = _scaled(list(numbers), old, new)
    exceptions = settings.get("per_layer_config")
    if isinstance(exceptions, dict):
        by_layer = {int(layer): value for layer, value in exceptions.items()}
        settings["per_layer_config"] = {
            index: by_layer[layer] for index, layer in enumerate(layers) if layer in by_layer
        }


def _scaled(numbers: list[int], old: int, new: int) -> list[int]:
    """Scale layer numbers of a stack of `old` to a stack of `new`, each once."""
    scaled = [number if number < 0 else number * new // old for number in numbers]
    if len(set(scaled)) < len(scaled):
        end = new + 1 if max(numbers) >= old else new
        scaled = list(range(max(0, end - len(numbers)), end))
    return scaled


def _remaining_layers(per_layer: dict[str, Any], old: int, new: int) -> list[int]:
    """Return the numbers of the remaining layers: the first ones of each kind."""
    kinds: dict[str, list[int]] = {}
    for layer in range(old):
        kinds.setdefault(repr([value[layer] for value in per_layer.values()]), []).append(layer)
    share = max(1, new // len(kinds))
    layers = sorted(layer for same in kinds.values() for layer in same[:share])[:new]
    layers += [layer for layer in range(old) if layer not in layers][: new - len(layers)]
    return sorted(layers)
