"""What is known of a net of transformers before it is called: its configuration, its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch

IMAGE_SIZE = 224
"""Of nets whose configuration does not name one."""

DETECTION_SIZE = 640


class ConfigView:
    """What is known of a net: its configuration, with the parts of it, and its arguments."""

    def __init__(self, net: torch.nn.Module, config: Any) -> None:
        self.net, self.config = net, config
        self.params = inspect.signature(net.forward).parameters
        self.family = str(config.model_type)

    def find(self, *keys: str, part: str = "", default: Any = None) -> Any:
        """The first of these settings that the configuration has, first in parts named so."""
        parts = list(_parts(self.config))
        parts.sort(key=lambda item: part not in item[0] if part else False)
        for _, config in parts:
            for key in keys:
                value = getattr(config, key, None)
                if value is not None:
                    return value
        return default

    def text(self, key: str, default: Any = None) -> Any:
        """A setting of the part of the configuration that is about text."""
        value = getattr(reader(self.config), key, None)
        return self.find(key, part="text", default=default) if value is None else value

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        large = any(word in type(self.net).__name__ for word in _LARGE)
        found = self.find(
            "image_size", "img_size", "input_size", "pretrained_img_size", part="vision",
            default=DETECTION_SIZE if large else IMAGE_SIZE,
        )  # fmt: skip
        if isinstance(found, Mapping):
            found = [found[key] for key in ("height", "width") if key in found]
        if isinstance(found, (list, tuple)):
            found = list(found)[-2:]
            return int(found[0]), int(found[-1])
        return int(found), int(found)

    @property
    def channels(self) -> int:
        """Channels of an image."""
        keys = ("num_channels", "in_channels", "in_chans", "num_input_channels")
        return int(self.find(*keys, part="vision", default=3))

    @property
    def patch(self) -> int:
        """Side of a patch of an image."""
        found = self.find("patch_size", part="vision", default=14)
        return int(found[-1] if isinstance(found, (list, tuple)) else found)


def reader(config: Any) -> Any:
    """The part of a configuration that is about text; of two, the one that reads."""
    try:
        return config.get_text_config()
    except ValueError:
        return config.get_text_config(encoder=True)


_LARGE = ("Detection", "Detr", "YOLO", "Yolos", "DFine", "DETR", "GroundingDino")


def _parts(config: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, config
    for key, value in vars(config).items():
        if hasattr(value, "model_type") and hasattr(value, "to_dict"):
            yield from _parts(value, key)
