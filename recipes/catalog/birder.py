"""birder: classifiers of images in their registered configurations."""

import importlib
from typing import Any

from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, image

ADDS = "image nets of a hundred architectures in one code base, in many configurations each"
PACKAGES = ("birder",)


def _registry() -> Any:
    import_with_torchvision("birder.net")
    return importlib.import_module("birder.model_registry").registry


def names() -> list[str]:
    """Return all configurations of classifiers."""
    registry = _registry()
    return [name for name in registry.registered_configs if name in registry._nets]


def build(name: str) -> Net:
    """Build a classifier of 1,000 classes, for an image of its own size."""
    registry = _registry()
    size = registry.get_default_size(name)
    net = registry.net_factory(name, 1000, size=size)
    return Net(net.eval(), (image(1, 3, *size),), domain="cv", task="image-classification")
