"""timm: image encoders and classifiers of every family, each architecture once."""

from collections.abc import Sequence
from typing import Any

from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, image

ADDS = "convolutional and transformer image nets of some 1,300 architectures"
PACKAGES = ("timm", "torchvision")


def names() -> list[str]:
    """Return all architectures; tags of pretrained weights share them."""
    return import_with_torchvision("timm").list_models()


def build(name: str) -> Net:
    """Build a classifier on one image of its configured size."""
    return net_of(import_with_torchvision("timm").create_model(name, pretrained=False).eval())


def net_of(
    net: Any, input_size: Sequence[int] | None = None, task: str = "image-classification"
) -> Net:
    """Return a net on one image of (channels, height, width), by default its configured size."""
    input_size = input_size or net.pretrained_cfg.get("input_size", (3, 224, 224))
    return Net(net, (image(1, *input_size),), domain="cv", task=task)
