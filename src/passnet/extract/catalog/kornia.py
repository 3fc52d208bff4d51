"""kornia: nets for local features, matching, edges, super-resolution and detection."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from passnet.extract.net import Net, NetInput, image
from passnet.extract.torchvision_ops import import_torchvision

ADDS = (
    "patch descriptors with local response norms, hand-made descriptors (SIFT, kernels), linear "
    "attention between two images, score maps of key points"
)
PACKAGES = ("kornia",)

KorniaEntry = tuple[str, Callable[[Any], Any], tuple[int, ...], str]
"""Module of the library; from that to a net; batch, channels, height, width; task."""

PATCHES = (8, 1, 32, 32)
PHOTO = (1, 3, 256, 256)

ENTRIES: dict[str, KorniaEntry] = {
    "HardNet": ("feature", lambda k: k.HardNet(False), PATCHES, "patch-description"),
    "HardNet8": ("feature", lambda k: k.HardNet8(False), PATCHES, "patch-description"),
    "HyNet": ("feature", lambda k: k.HyNet(False), PATCHES, "patch-description"),
    "TFeat": ("feature", lambda k: k.TFeat(False), PATCHES, "patch-description"),
    "SOSNet": ("feature", lambda k: k.SOSNet(False), PATCHES, "patch-description"),
    "SIFT": ("feature", lambda k: k.SIFTDescriptor(32), PATCHES, "patch-description"),
    "MKD-polar": (
        "feature",
        lambda k: k.MKDDescriptor(kernel_type="polar", whitening=None),
        PATCHES,
        "patch-description",
    ),
    "MKD-cartesian": (
        "feature",
        lambda k: k.MKDDescriptor(kernel_type="cart", whitening=None),
        PATCHES,
        "patch-description",
    ),
    "OriNet": ("feature", lambda k: k.OriNet(False), PATCHES, "orientation-estimation"),
    "KeyNet": ("feature.keynet", lambda k: k.KeyNet(False), (1, 1, 256, 256), "keypoint-detection"),
    "DISK": (
        "feature",
        lambda k: k.DISK().eval().heatmap_and_dense_descriptors,
        PHOTO,
        "keypoint-detection",
    ),
    "ALIKED": (
        "feature.aliked.aliked",
        lambda k: k.ALIKED().eval().extract_dense_map,
        PHOTO,
        "keypoint-detection",
    ),
    "XFeat": ("feature.xfeat", lambda k: k.XFeat().net, (1, 1, 256, 256), "keypoint-detection"),
    "LoFTR": ("feature", lambda k: ImagePair(k.LoFTR(None)), (1, 1, 256, 256), "image-matching"),
    "DexiNed": ("models.dexined", lambda k: k.DexiNed(False), PHOTO, "edge-detection"),
    "RRDBNet-x4": ("models.rrdbnet", lambda k: k.RRDBNet(3, 3, 4), PHOTO, "super-resolution"),
    "RRDBNet-x2": ("models.rrdbnet", lambda k: k.RRDBNet(3, 3, 2), PHOTO, "super-resolution"),
    "SmallSRNet": (
        "models.small_sr",
        lambda k: k.SmallSRNet(3, pretrained=False),
        (1, 1, 224, 224),
        "super-resolution",
    ),
    "YuNet": (
        "models.yunet.model",
        lambda k: k.YuNet("test", False),
        (1, 3, 320, 320),
        "face-detection",
    ),
    "TinyViT": ("models.tiny_vit", lambda k: k.TinyViT(), (1, 3, 224, 224), "image-classification"),
    "TinyViT-5m": (
        "models.tiny_vit",
        lambda k: k.TinyViT.from_config("5m"),
        (1, 3, 224, 224),
        "image-classification",
    ),
    "VisionTransformer": (
        "models.vit",
        lambda k: k.VisionTransformer(),
        (1, 3, 224, 224),
        "image-feature-extraction",
    ),
    "MobileViT-xxs": (
        "models.vit_mobile",
        lambda k: k.MobileViT("xxs"),
        PHOTO,
        "image-feature-extraction",
    ),
    "MobileViT-s": (
        "models.vit_mobile",
        lambda k: k.MobileViT("s"),
        PHOTO,
        "image-feature-extraction",
    ),
    "EfficientViT-b1": (
        "models.efficient_vit.backbone",
        lambda k: k.efficientvit_backbone_b1(),
        (1, 3, 224, 224),
        "image-feature-extraction",
    ),
    "EfficientViT-l1": (
        "models.efficient_vit.backbone",
        lambda k: k.efficientvit_backbone_l1(),
        (1, 3, 224, 224),
        "image-feature-extraction",
    ),
}


class ImagePair(nn.Module):
    """A matcher that is called with two images instead of a dictionary of them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, image0: torch.Tensor, image1: torch.Tensor) -> Any:
        """The points that match."""
        return self.net({"image0": image0, "image1": image1})


def names() -> Sequence[str]:
    """All entries that the table names."""
    _module("feature")
    return list(ENTRIES)


def build(name: str) -> Net:
    """The net on one image, on eight patches, or on two images that are to be matched."""
    module, make, shape, task = ENTRIES[name]
    net = make(_module(module))
    if isinstance(net, nn.Module):
        net.eval()
    count = 2 if isinstance(net, ImagePair) else 1
    args: tuple[NetInput, ...] = (image(*shape),) * count
    return Net(net, args, domain="cv", task=task)


def _module(name: str) -> Any:
    import_torchvision()
    return importlib.import_module(f"kornia.{name}")
