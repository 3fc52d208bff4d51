"""transformers: every net class that the library exports, base nets and task heads alike."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Sequence
from typing import Any

from passnet.extract.catalog.transformers_inputs import inputs
from passnet.extract.net import Domain, Net
from passnet.extract.torchvision_ops import ready_torchvision

ADDS = "language, vision, speech and multimodal nets, each with all its task heads"
PACKAGES = ("transformers", "torchvision")

MAX_LAYERS = 4
"""Layers that are kept of each stack; those after them are the same again."""

_NETS = re.compile(
    r"(Model|For[A-Z]\w*|Backbone|Encoder|Decoder|WithProjection|Reader|VisionTransformer|VQVAE"
    r"|HifiGan|WithLMHead|SVTR|SLAHead|LMHeadModel|Code2Wav)$"
)
_NOT_NETS = re.compile(
    r"^Auto|Pre[Tt]rained|Processor|^DataCollator|^Bayesian|PermuteForRope|ResamplerModel$"
    r"|^Lxmert.*Encoder$|^BarkModel$"
)

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

_DERIVED = {"stage_names", "out_features", "_out_features"}
"""Settings that follow from the number of layers."""


@functools.cache
def ready() -> None:
    """Import transformers so that its nets can be imported beside a CPU build of torch.

    A torchaudio that does not load is not to be seen by it: nets do without.

    Raises:
        ImportError: transformers is not installed.
    """
    ready_torchvision()
    try:
        importlib.import_module("torchaudio")
    except ImportError:
        pass
    except OSError:
        sys.modules["torchaudio"] = None  # type: ignore[assignment]
    from transformers.utils import is_torchaudio_available, logging

    is_torchaudio_available()  # it remembers
    if sys.modules.get("torchaudio", sys) is None:
        del sys.modules["torchaudio"]
    logging.set_verbosity_error()


def names() -> Sequence[str]:
    """All classes of nets, as the package exports them."""
    ready()
    import transformers

    found = [name for name in dir(transformers) if _NETS.search(name)]
    return sorted(name for name in found if not _NOT_NETS.search(name))


def build(name: str) -> Net:
    """The net of a class in its default configuration, with a few layers in each stack.

    Raises:
        ValueError: the class has no default configuration, or takes what is not known here.
    """
    ready()
    import transformers

    kind = getattr(transformers, name)
    if name in _COMPOSED:
        config = composed(name)
        return net_of(kind, config)
    said = _SETTINGS.get(name) or _SETTINGS.get(kind.config_class.model_type, {})
    config, changes = reduced(kind.config_class(**said))
    changes += tuple(f"{key} = {value}" for key, value in said.items())
    changes += fitted(config)
    return net_of(kind, config, changes)


def net_of(kind: Any, config: Any, changes: tuple[str, ...] = ()) -> Net:
    """A net of this class and configuration, with inputs."""
    net = kind(config).eval()
    domain, task = purpose(kind.__name__, net)
    return Net(net, kwargs=inputs(net, config), domain=domain, task=task, changes=changes)


def fitted(config: Any) -> tuple[str, ...]:
    """Make what the part that sees puts out as wide as the text, in place; what was changed.

    The defaults of the parts come from nets of different sizes.
    """
    seen, read = getattr(config, "vision_config", None), config.get_text_config()
    width, wanted = getattr(seen, "out_hidden_size", None), getattr(read, "hidden_size", None)
    if seen is None or width is None or wanted is None or width == wanted:
        return ()
    seen.out_hidden_size = wanted
    return (f"vision_config.out_hidden_size {width} -> {wanted}",)


def reduced(config: Any) -> tuple[Any, tuple[str, ...]]:
    """A configuration with at most `MAX_LAYERS` layers in every stack, and what was changed."""
    settings = config.to_dict()
    changes: list[str] = []
    cut(settings, changes)
    if not changes:
        return config, ()
    return type(config).from_dict(settings), tuple(changes)


def cut(settings: dict[str, Any], changes: list[str], prefix: str = "") -> None:
    """Reduce the depth in the settings of a configuration and of its parts, in place.

    Lists with one item for each layer keep the first of each kind; lists of layer numbers are
    scaled.
    """
    sizes: dict[int, int] = {}
    for key, value in list(settings.items()):
        if isinstance(value, dict) and key.endswith("config"):
            cut(value, changes, f"{prefix}{key}.")
        if key not in _DEPTHS:
            continue
        shorter = _shorter(value)
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


_COMPOSED = {
    "EncoderDecoderModel": ("EncoderDecoderConfig", "from_encoder_decoder_configs",
                            "BertConfig", "BertConfig"),
    "SpeechEncoderDecoderModel": ("SpeechEncoderDecoderConfig", "from_encoder_decoder_configs",
                                  "Wav2Vec2Config", "BertConfig"),
    "VisionEncoderDecoderModel": ("VisionEncoderDecoderConfig", "from_encoder_decoder_configs",
                                  "ViTConfig", "BertConfig"),
    "VisionTextDualEncoderModel": ("VisionTextDualEncoderConfig", "from_vision_text_configs",
                                   "ViTConfig", "BertConfig"),
}  # fmt: skip
"""Nets that are put together from two, which have no default: of which two, and by what."""


def composed(name: str) -> Any:
    """A configuration of two small nets."""
    import transformers

    kind, maker, *parts = _COMPOSED[name]
    configs = [getattr(transformers, part)(num_hidden_layers=MAX_LAYERS) for part in parts]
    return getattr(getattr(transformers, kind), maker)(*configs)


_SETTINGS: dict[str, dict[str, Any]] = {
    "ReformerModelWithLMHead": {"is_decoder": True},
    "aya_vision": {"vision_config": {"model_type": "siglip_vision_model", "image_size": 384,
                                     "num_attention_heads": 16}},
    "gemma3": {"vision_config": {"image_size": 896, "patch_size": 14}},
    "idefics3": {"vision_config": {"image_size": 256}},
    "smolvlm": {"vision_config": {"image_size": 256}},
    "nemotron": {"num_key_value_heads": 8},
    "t5gemma2": {"vision_config": {"image_size": 896, "patch_size": 14}},
}  # fmt: skip
"""Classes, or families, whose default settings do not fit each other: what must be said."""


@functools.cache
def tasks() -> dict[str, str]:
    """Name of a class -> the words of transformers for what it is for."""
    from transformers.models.auto import modeling_auto

    found: dict[str, str] = {}
    for name, mapping in vars(modeling_auto).items():
        match = re.fullmatch(r"MODEL_FOR_(\w+)_MAPPING_NAMES", name)
        if match is None:
            continue
        task = match[1].lower().replace("_", "-")
        for kinds in mapping.values():
            for kind in (kinds,) if isinstance(kinds, str) else kinds:
                found.setdefault(kind, _TASKS.get(task, task))
    return found


_TASKS = {"causal-lm": "text-generation", "masked-lm": "fill-mask", "seq-to-seq-causal-lm":
          "text2text-generation", "sequence-classification": "text-classification"}  # fmt: skip
"""Where the words of the hub differ from those of the library's tables."""


def purpose(name: str, net: Any) -> tuple[Domain, str]:
    """Domain and task of a class: by what it takes, and by the tables of the library."""
    takes = set(inspect.signature(net.forward).parameters)
    text = bool(takes & {"input_ids", "decoder_input_ids"})
    seen = any(name.startswith(("pixel_values", "flattened_patches")) or name == "grid_thw"
               for name in takes)  # fmt: skip
    heard = bool(takes & {"input_values", "input_features", "spectrogram"})
    domain: Domain = "other"
    if seen:
        domain = "multimodal" if text or heard else "cv"
    elif heard:
        domain = "audio"
    elif text:
        domain = "nlp"
    return domain, tasks().get(name, "feature-extraction")
