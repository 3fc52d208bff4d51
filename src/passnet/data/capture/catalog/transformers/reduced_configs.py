"""Configurations of transformers with few layers, otherwise their defaults."""

import re
from typing import Any

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


def reduce_layers(config: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a configuration with at most `MAX_LAYERS` layers a stack, and the changes."""
    settings = config.to_dict()
    changes: list[str] = []
    reduce_settings(settings, changes)
    return (type(config).from_dict(settings) if changes else config), tuple(changes)


def reduce_settings(settings: dict[str, Any], changes: list[str], prefix: str = "") -> None:
    """Reduce the depth in the settings of a configuration and of its parts, in place.

    Lists with a value for each layer keep the first of each kind; layer numbers are scaled.
    """
    depths: dict[int, int] = {}
    stages = {len(settings[key]) for key in _DEPTHS if isinstance(settings.get(key), (list, tuple))}
    for key, value in list(settings.items()):
        if isinstance(value, dict) and key.endswith("config"):
            reduce_settings(value, changes, f"{prefix}{key}.")
        if key not in _DEPTHS or (isinstance(value, int) and value in stages):
            continue
        shorter = _at_most_max_layers(value)
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
            settings[key] = _within_layers(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _within_layers(value: Any) -> Any:
    """Clamp layer numbers, also those from the end, to the remaining layers."""
    if isinstance(value, (list, tuple)):
        within = [_within_layers(layer) for layer in value]
        if len(set(within)) == len(set(value)) or len(value) > MAX_LAYERS:
            return within
        return list(range(MAX_LAYERS - len(value), MAX_LAYERS))
    return max(-MAX_LAYERS, min(MAX_LAYERS - 1, value)) if _is_number(value) else value


def _at_most_max_layers(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(depth, int) for depth in value):
        return type(value)(min(depth, MAX_LAYERS) for depth in value)
    return min(value, MAX_LAYERS) if _is_number(value) else value


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
