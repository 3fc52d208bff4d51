"""transformers_variants: a net of each family that reads or hears, with one setting changed."""

import functools
import inspect
import zlib
from collections.abc import Iterator
from typing import Any

from passnet.data.capture.catalog import transformers as library
from passnet.data.capture.catalog.transformers import configs
from passnet.data.capture.net import Net

ADDS = "text and speech nets with another attention, activation, number of heads, or switch"
PACKAGES, LAYERS = library.PACKAGES, 2
ACTIVATIONS = ("relu", "gelu_new", "silu", "quick_gelu", "relu2", "mish", "tanh", "gelu_fast")
ACTIVATION_SETTINGS = ("hidden_act", "activation_function", "hidden_activation", "activation")
NO_CHANGE = ("cache", "output_", "tie_", "checkpoint", "return", "dropout", "init", "router_logits")
"""Parts of the names of switches that change no graph of a net in use."""


def _config(net_class: Any) -> Any:
    settings = configs.required_settings(net_class.__name__, net_class.config_class)
    return configs.reduce_layers(net_class.config_class(**settings), LAYERS)[0]


def _options(own: dict[str, Any], family: str) -> Iterator[tuple[str, Any]]:
    """Return the settings to change, one at a time, with their values."""
    yield "_attn_implementation", "eager"
    for key in [key for key in ACTIVATION_SETTINGS if isinstance(own.get(key), str)][:1]:
        others = [name for name in ACTIVATIONS if name != own[key]]
        first = zlib.crc32(family.encode())
        yield from ((key, others[(first + step) % len(others)]) for step in (0, 3))
    heads, pairs = own.get("num_attention_heads"), own.get("num_key_value_heads")
    if isinstance(heads, int) and isinstance(pairs, int):
        yield from (("num_key_value_heads", number) for number in (1, heads) if number != pairs)
    usual = library.import_transformers().PreTrainedConfig().to_dict()
    for key, value in own.items():
        if isinstance(value, bool) and key not in usual and not any(w in key for w in NO_CHANGE):
            yield key, not value


@functools.cache
def _entries() -> dict[str, tuple[Any, str, Any]]:
    """Return class, setting and value of each entry: of a family, the class of shortest name."""
    entries: dict[str, tuple[Any, str, Any]] = {}
    families: set[str] = set()
    for name in sorted(library.names(), key=lambda name: (len(name), name)):
        net_class = getattr(library.import_transformers(), name)
        if type(net_class).__name__ == "DummyObject":  # it needs a package that is not there
            continue
        params = set(inspect.signature(net_class.forward).parameters)
        sees = any(param.startswith(("pixel", "image", "flattened")) for param in params)
        family = getattr(getattr(net_class, "config_class", None), "model_type", None)
        if sees or family is None or not params & {"input_ids", "input_values", "input_features"}:
            continue
        if family not in families:
            families.add(family)
            try:
                own = _config(net_class).to_dict()
            except Exception:  # noqa: BLE001, S112 (boundary: configurations raise anything)
                continue
            for key, value in _options({k: own[k] for k in own if k[0] != "_"}, family):
                entries[f"{name}+{key.strip('_')}-{str(value).lower()}"] = (net_class, key, value)
    return entries


def names() -> list[str]:
    """Return a net of each family with each of its options."""
    return list(_entries())


def build(name: str) -> Net:
    """Build a net of two layers with one setting other than its default."""
    net_class, key, value = _entries()[name]
    config = _config(net_class)
    was = getattr(config, key, None)
    for part in (config, *(part for part in vars(config).values() if hasattr(part, "model_type"))):
        if key == "_attn_implementation" or part is config:
            setattr(part, key, value)
    changes = (f"{key} {was} -> {value}", *configs.match_widths(config))
    return library.net_of(net_class, config, changes)
