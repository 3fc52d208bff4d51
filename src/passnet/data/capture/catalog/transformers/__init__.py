"""transformers: every net class that the library exports, in its default configuration but for a
few layers in each stack.

    inputs, arguments, input_factories  inputs by the names of a net's arguments
    families                            families that need other inputs
    configs                             defaults that a configuration lacks, and few layers
"""

import functools
import importlib
import inspect
import re
import sys
from typing import Any

from passnet.data.capture.catalog.transformers import configs
from passnet.data.capture.catalog.transformers.inputs import inputs, omitted_inputs
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.data.capture.net import Domain, Net

ADDS = "language, vision, speech and multimodal nets, each with all its task heads"
PACKAGES = ("transformers", "torchvision")

_NETS = re.compile(
    r"(Model|For[A-Z]\w*|Backbone|Encoder|Decoder|WithProjection|Reader|VisionTransformer|VQVAE"
    r"|HifiGan|WithLMHead|SVTR|SLAHead|LMHeadModel|Code2Wav)$"
)
_NOT_NETS = re.compile(
    r"^Auto|Pre[Tt]rained|Processor|^DataCollator|^Bayesian|PermuteForRope|ResamplerModel$"
    r"|^Lxmert.*Encoder$|^BarkModel$|^(Chameleon|Emu3)VQVAE$|^SeamlessM4THifiGan$"
    r"|^(Sam2|Sam3\w*|EdgeTam)VideoModel$"
)


@functools.cache
def import_transformers() -> Any:
    """Import the package without a torchaudio that does not load: nets do without."""
    import_torchvision()
    try:
        importlib.import_module("torchaudio")
    except ImportError:
        pass
    except OSError:
        sys.modules["torchaudio"] = None  # type: ignore[assignment]
    import transformers
    from transformers.utils import is_torchaudio_available, logging

    is_torchaudio_available()  # it remembers
    if sys.modules.get("torchaudio", sys) is None:
        del sys.modules["torchaudio"]
    logging.set_verbosity_error()
    return transformers


def names() -> list[str]:
    """Return all classes of nets that the package exports."""
    exported = dir(import_transformers())
    return sorted(name for name in exported if _NETS.search(name) and not _NOT_NETS.search(name))


def build(name: str) -> Net:
    """Build the net of a class in its default configuration, with a few layers in each stack."""
    net_class = getattr(import_transformers(), name)
    if name in _COMPOSED:
        return net_of(net_class, composed_config(name))
    settings = configs.required_settings(name, net_class.config_class)
    config, changes = net_class.config_class(**settings), ()
    if config.model_type not in configs.WHOLE:
        config, changes = configs.reduce_layers(config)
    changes += tuple(f"{key} = {value}" for key, value in settings.items())
    return net_of(net_class, config, changes + configs.match_widths(config))


def net_of(net_class: Any, config: Any, changes: tuple[str, ...] = ()) -> Net:
    """Return a net of a class and configuration, with inputs."""
    if getattr(config, "_experts_implementation", None) is None:
        config._experts_implementation = "batched_mm"  # others loop over values, or are no torch op
    net = net_class(config).eval()
    domain, task = domain_and_task(net_class.__name__, net)
    arguments = inputs(net, config)
    changes += tuple(f"called without {name}" for name in omitted_inputs(net, arguments))
    return Net(net, kwargs=arguments, domain=domain, task=task, changes=changes)


_COMPOSED = {
    "EncoderDecoderModel": ("BertConfig", "BertConfig"),
    "SpeechEncoderDecoderModel": ("Wav2Vec2Config", "BertConfig"),
    "VisionEncoderDecoderModel": ("ViTConfig", "BertConfig"),
    "VisionTextDualEncoderModel": ("ViTConfig", "BertConfig"),
}
"""Nets composed of two, without a default: the configurations of both."""


def composed_config(name: str) -> Any:
    """Return a configuration of two small nets."""
    library = import_transformers()
    layers = configs.MAX_LAYERS
    parts = [getattr(library, part)(num_hidden_layers=layers) for part in _COMPOSED[name]]
    config_class = getattr(library, f"{name.removesuffix('Model')}Config")
    if name == "VisionTextDualEncoderModel":
        return config_class.from_vision_text_configs(*parts)
    return config_class.from_encoder_decoder_configs(*parts)


@functools.cache
def class_tasks() -> dict[str, str]:
    """Return the task of each class, in the words of transformers."""
    from transformers.models.auto import modeling_auto

    tasks: dict[str, str] = {}
    for name, mapping in vars(modeling_auto).items():
        if match := re.fullmatch(r"MODEL_FOR_(\w+)_MAPPING_NAMES", name):
            task = match[1].lower().replace("_", "-")
            for classes in mapping.values():
                for class_name in (classes,) if isinstance(classes, str) else classes:
                    tasks.setdefault(class_name, _HUB_TASKS.get(task, task))
    return tasks


_HUB_TASKS = {
    "causal-lm": "text-generation", "masked-lm": "fill-mask",
    "seq-to-seq-causal-lm": "text2text-generation",
    "sequence-classification": "text-classification",
}  # fmt: skip
"""Tasks that the hub names otherwise than the library's tables."""


def domain_and_task(class_name: str, net: Any) -> tuple[Domain, str]:
    """Return domain and task, by the inputs of a class and the library's tables."""
    params = set(inspect.signature(net.forward).parameters)
    reads = bool(params & {"input_ids", "decoder_input_ids"})
    sees = any(
        name.startswith(("pixel_values", "flattened_patches")) or name == "grid_thw"
        for name in params
    )
    hears = bool(params & {"input_values", "input_features", "spectrogram"})
    domain: Domain = "audio" if hears else "nlp" if reads else "other"
    if sees:
        domain = "multimodal" if reads or hears else "cv"
    return domain, class_tasks().get(class_name, "feature-extraction")
