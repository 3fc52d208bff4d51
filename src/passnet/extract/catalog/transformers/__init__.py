"""transformers: every net class that the library exports, base nets and task heads alike."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Sequence
from typing import Any

from passnet.extract.catalog.transformers.config_defaults import WHOLE, required_settings
from passnet.extract.catalog.transformers.inputs import inputs, omitted_inputs
from passnet.extract.catalog.transformers.reduced_configs import (
    MAX_LAYERS,
    match_widths,
    reduce_layers,
)
from passnet.extract.net import Domain, Net
from passnet.extract.torchvision_ops import import_torchvision

ADDS = "language, vision, speech and multimodal nets, each with all its task heads"
PACKAGES = ("transformers", "torchvision")

_NETS = re.compile(
    r"(Model|For[A-Z]\w*|Backbone|Encoder|Decoder|WithProjection|Reader|VisionTransformer|VQVAE"
    r"|HifiGan|WithLMHead|SVTR|SLAHead|LMHeadModel|Code2Wav)$"
)
_NOT_NETS = re.compile(
    r"^Auto|Pre[Tt]rained|Processor|^DataCollator|^Bayesian|PermuteForRope|ResamplerModel$"
    r"|^Lxmert.*Encoder$|^BarkModel$|^ChameleonVQVAE$|^Sam2VideoModel$|^Sam3\w*VideoModel$"
)


@functools.cache
def import_transformers() -> None:
    """Import transformers so that its nets can be imported beside a CPU build of torch.

    A torchaudio that does not load is not to be seen by it: nets do without.

    Raises:
        ImportError: transformers is not installed.
    """
    import_torchvision()
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
    import_transformers()
    import transformers

    found = [name for name in dir(transformers) if _NETS.search(name)]
    return sorted(name for name in found if not _NOT_NETS.search(name))


def build(name: str) -> Net:
    """The net of a class in its default configuration, with a few layers in each stack.

    Raises:
        ValueError: the class has no default configuration, or takes what is not known here.
    """
    import_transformers()
    import transformers

    kind = getattr(transformers, name)
    if name in _COMPOSED:
        config = composed_config(name)
        return net_of(kind, config)
    settings = required_settings(name, kind.config_class)
    config, changes = kind.config_class(**settings), ()
    if config.model_type not in WHOLE:
        config, changes = reduce_layers(config)
    changes += tuple(f"{key} = {value}" for key, value in settings.items())
    changes += match_widths(config)
    return net_of(kind, config, changes)


def net_of(kind: Any, config: Any, changes: tuple[str, ...] = ()) -> Net:
    """A net of this class and configuration, with inputs."""
    if getattr(config, "_experts_implementation", None) is None:
        config._experts_implementation = "batched_mm"  # others loop over values, or are no torch op
    net = kind(config).eval()
    domain, task = domain_and_task(kind.__name__, net)
    given = inputs(net, config)
    changes += tuple(f"called without {name}" for name in omitted_inputs(net, given))
    return Net(net, kwargs=given, domain=domain, task=task, changes=changes)


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


def composed_config(name: str) -> Any:
    """A configuration of two small nets."""
    import transformers

    kind, maker, *parts = _COMPOSED[name]
    configs = [getattr(transformers, part)(num_hidden_layers=MAX_LAYERS) for part in parts]
    return getattr(getattr(transformers, kind), maker)(*configs)


@functools.cache
def class_tasks() -> dict[str, str]:
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


def domain_and_task(name: str, net: Any) -> tuple[Domain, str]:
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
    return domain, class_tasks().get(name, "feature-extraction")
