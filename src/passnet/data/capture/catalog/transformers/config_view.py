"""Configuration and arguments of a transformers net, before it is called."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch

IMAGE_SIZE = 224
"""Image size of nets whose configuration names none."""

DETECTION_SIZE = 640
_DETECTORS = ("Detection", "Detr", "YOLO", "Yolos", "DFine", "DETR", "GroundingDino")
"""Words in the names of classes that take such large images."""


class ConfigView:
    """The configuration of a net with its parts, and the arguments of the net."""

    def __init__(self, net: torch.nn.Module, config: Any) -> None:
        self.net, self.config = net, config
        self.class_name = type(net).__name__
        self.params = inspect.signature(net.forward).parameters
        self.family = str(config.model_type)

    def find(self, *keys: str, part: str = "", default: Any = None) -> Any:
        """Return the first configured setting of several, first in parts of this name."""
        parts = sorted(_parts(self.config), key=lambda named: bool(part) and part not in named[0])
        settings = (getattr(config, key, None) for _, config in parts for key in keys)
        return next((value for value in settings if value is not None), default)

    def text(self, key: str, default: Any = None) -> Any:
        """Return a setting of the text part of the configuration."""
        value = getattr(text_config(self.config), key, None)
        return self.find(key, part="text", default=default) if value is None else value

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        size = self.find("image_size", "img_size", "input_size", "pretrained_img_size",
                         part="vision")  # fmt: skip
        if size is None:
            is_detector = any(word in self.class_name for word in _DETECTORS)
            size = DETECTION_SIZE if is_detector else IMAGE_SIZE
        if isinstance(size, Mapping):
            size = [size[key] for key in ("height", "width") if key in size]
        if isinstance(size, (list, tuple)):
            size = list(size)[-2:]
            return int(size[0]), int(size[-1])
        return int(size), int(size)

    @property
    def channels(self) -> int:
        """Channels of an image."""
        keys = ("num_channels", "in_channels", "in_chans", "num_input_channels")
        return int(self.find(*keys, part="vision", default=3))

    @property
    def patch(self) -> int:
        """Side of a patch of an image."""
        side = self.find("patch_size", part="vision", default=14)
        return int(side[-1] if isinstance(side, (list, tuple)) else side)


def text_config(config: Any) -> Any:
    """Return the text part of a configuration; of two, the encoder."""
    try:
        return config.get_text_config()
    except ValueError:
        return config.get_text_config(encoder=True)


def _parts(config: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, config
    for key, value in vars(config).items():
        if hasattr(value, "model_type") and hasattr(value, "to_dict"):
            yield from _parts(value, key)
