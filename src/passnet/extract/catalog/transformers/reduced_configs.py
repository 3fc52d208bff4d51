"""Configurations of transformers with few layers, and otherwise as they are by default."""

from __future__ import annotations

import re
from typing import Any

MAX_LAYERS = 4
"""Layers that are kept of each stack; those after them are the same again."""

_DEPTHS = {
    "num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "n_layers", "num_layers",
    "num_encoder_layers", "num_decoder_layers", "depth", "depths", "num_attention_layers",
    "num_blocks", "num_hidden_groups", "encoder_num_layers", "decoder_num_layers",
    "encoder_num_hidden_layers", "decoder_num_hidden_layers", "num_stack_layers", "layers",
    "encoder_depth", "decoder_depth", "num_block_records", "speech_encoder_layers",
    "t2u_encoder_layers", "t2u_decoder_layers", "num_layers_per_stage", "num_encoder_blocks_layers",
    "l_layers", "x_layers", "r_layers", "context_layers", "num_mtp_layers",
}  # fmt: skip
"""Settings that say how many layers a stack has, or a list of them, one for each stage."""

_DERIVED = {"stage_names", "out_features", "_out_features", "hybrid_layer_ids"}
"""Settings that follow from the number of layers."""


def match_widths(config: Any) -> tuple[str, ...]:
    """Make what the part that sees puts out as wide as the text, in place; what was changed.

    The defaults of the parts come from nets of different sizes.
    """
    seen = getattr(config, "vision_config", None)
    width = getattr(seen, "out_hidden_size", None)
    if seen is None or width is None:
        return ()
    wanted = getattr(config.get_text_config(), "hidden_size", None)
    if wanted is None or width == wanted:
        return ()
    seen.out_hidden_size = wanted
    return (f"vision_config.out_hidden_size {width} -> {wanted}",)


def reduce_layers(config: Any) -> tuple[Any, tuple[str, ...]]:
    """A configuration with at most `MAX_LAYERS` layers in every stack, and what was changed."""
    settings = config.to_dict()
    changes: list[str] = []
    reduce_settings(settings, changes)
    if not changes:
        return config, ()
    return type(config).from_dict(settings), tuple(changes)


def reduce_settings(settings: dict[str, Any], changes: list[str], prefix: str = "") -> None:
    """Reduce the depth in the settings of a configuration and of its parts, in place.

    Lists with one item for each layer keep the first of each kind; lists of layer numbers are
    scaled.
    """
    sizes: dict[int, int] = {}
    stages = {len(settings[key]) for key in _DEPTHS if isinstance(settings.get(key), (list, tuple))}
    for key, value in list(settings.items()):
        if isinstance(value, dict) and key.endswith("config"):
            reduce_settings(value, changes, f"{prefix}{key}.")
        if key not in _DEPTHS:
            continue
        is_stages = isinstance(value, int) and value in stages
        shorter = value if is_stages else _shorter(value)
        if shorter != value:
            settings[key] = shorter
            changes.append(f"{prefix}{key} {value} -> {shorter}")
            if isinstance(value, int):
                sizes[value] = shorter
    for old, new in sorted(sizes.items()):
        _follow(settings, old, new)
    if sizes:
        for key in _DERIVED:
            settings.pop(key, None)
        if settings.get("num_kv_shared_layers"):  # there are too few left to share
            changes.append(f"{prefix}num_kv_shared_layers {settings['num_kv_shared_layers']} -> 0")
            settings["num_kv_shared_layers"] = 0
    for key, value in settings.items():
        if "feature_layer" in key and changes:  # of a part; 0 is what comes before the layers
            settings[key] = _within(value)


def _within(value: Any) -> Any:
    """Numbers of layers, also from the end, that are there after the reduction."""
    if isinstance(value, (list, tuple)):
        within = [_within(item) for item in value]
        if len(set(within)) == len(set(value)) or len(value) > MAX_LAYERS:
            return within
        return list(range(MAX_LAYERS - len(value), MAX_LAYERS))
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-MAX_LAYERS, min(MAX_LAYERS - 1, value))
    return value


def _shorter(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return min(value, MAX_LAYERS)
    if isinstance(value, (list, tuple)) and all(isinstance(item, int) for item in value):
        return type(value)(min(item, MAX_LAYERS) for item in value)
    return value


def _follow(settings: dict[str, Any], old: int, new: int) -> None:
    lists = {key: value for key, value in settings.items() if isinstance(value, (list, tuple))}
    per_layer = {key: value for key, value in lists.items() if len(value) == old}
    kept = _kept(per_layer, old, new)
    for key, value in lists.items():
        if not value or key in _DERIVED or key in _DEPTHS:
            continue
        numbers = all(isinstance(item, int) and not isinstance(item, bool) for item in value)
        if key in per_layer:
            settings[key] = [value[index] for index in kept]
        elif numbers and re.search(r"ind(ex|ic)|idx|layers", key) and max(value) >= new:
            settings[key] = _scaled(list(value), old, new)
    exceptions = settings.get("per_layer_config")
    if isinstance(exceptions, dict):
        said = {int(index): value for index, value in exceptions.items()}
        left = {at: said[index] for at, index in enumerate(kept) if index in said}
        settings["per_layer_config"] = left


def _scaled(numbers: list[int], old: int, new: int) -> list[int]:
    """Numbers of layers of a stack of `old`, brought to a stack of `new`, each once."""
    scaled = [item if item < 0 else item * new // old for item in numbers]
    if len(set(scaled)) < len(scaled):
        end = new + 1 if max(numbers) >= old else new
        scaled = list(range(max(0, end - len(numbers)), end))
    return scaled


def _kept(per_layer: dict[str, Any], old: int, new: int) -> list[int]:
    """Numbers of the layers to keep: as many of each kind, the first ones."""
    kinds: dict[str, list[int]] = {}
    for index in range(old):
        kinds.setdefault(repr([value[index] for value in per_layer.values()]), []).append(index)
    share = max(1, new // len(kinds))
    kept = sorted(index for same in kinds.values() for index in same[:share])[:new]
    kept += [index for index in range(old) if index not in kept][: new - len(kept)]
    return sorted(kept)
