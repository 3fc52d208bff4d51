"""timm: image encoders and classifiers of every family, each architecture once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passnet.extract.net import Net, image
from passnet.extract.torchvision_ops import import_torchvision

ADDS = "convolutional and transformer image nets of some 1,300 architectures"
PACKAGES = ("timm", "torchvision")


def names() -> Sequence[str]:
    """All architectures; tags of pretrained weights share them."""
    import_torchvision()
    import timm

    return timm.list_models()


def build(name: str) -> Net:
    """A classifier on one image of the size that its configuration asks for."""
    import_torchvision()
    import timm

    net = timm.create_model(name, pretrained=False).eval()
    known: Any = net.pretrained_cfg
    channels, height, width = known.get("input_size", (3, 224, 224))
    return Net(net, (image(1, channels, height, width),), domain="cv", task="image-classification")
