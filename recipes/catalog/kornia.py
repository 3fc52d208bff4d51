"""kornia: nets for local features, matching, edges, super-resolution and detection."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, image

ADDS = (
    "patch descriptors with local response norms, hand-made descriptors (SIFT, kernels), linear "
    "attention between two images, score maps of key points"
)
PACKAGES = ("kornia",)

KorniaEntry = tuple[str, Callable[[Any], Any], tuple[int, ...], str]
"""From the module of the library to a net; batch, channels, height, width; task."""

PATCHES, GRAY = (8, 1, 32, 32), (1, 1, 256, 256)
PHOTO, SMALL_PHOTO = (1, 3, 256, 256), (1, 3, 224, 224)
DESCRIBE, DETECT, ENLARGE = "patch-description", "keypoint-detection", "super-resolution"
EFFICIENT = "models.efficient_vit.backbone"
CLASSIFY, FEATURES = "image-classification", "image-feature-extraction"

ENTRIES: dict[str, KorniaEntry] = {
    "HardNet": ("feature", lambda k: k.HardNet(False), PATCHES, DESCRIBE),
    "HardNet8": ("feature", lambda k: k.HardNet8(False), PATCHES, DESCRIBE),
    "HyNet": ("feature", lambda k: k.HyNet(False), PATCHES, DESCRIBE),
    "TFeat": ("feature", lambda k: k.TFeat(False), PATCHES, DESCRIBE),
    "SOSNet": ("feature", lambda k: k.SOSNet(False), PATCHES, DESCRIBE),
    "SIFT": ("feature", lambda k: k.SIFTDescriptor(32), PATCHES, DESCRIBE),
    "MKD-polar": ("feature", lambda k: k.MKDDescriptor(kernel_type="polar", whitening=None),
                  PATCHES, DESCRIBE),
    "MKD-cartesian": ("feature", lambda k: k.MKDDescriptor(kernel_type="cart", whitening=None),
                      PATCHES, DESCRIBE),
    "OriNet": ("feature", lambda k: k.OriNet(False), PATCHES, "orientation-estimation"),
    "KeyNet": ("feature.keynet", lambda k: k.KeyNet(False), GRAY, DETECT),
    "DISK": ("feature", lambda k: k.DISK().eval().heatmap_and_dense_descriptors, PHOTO, DETECT),
    "ALIKED": ("feature.aliked.aliked", lambda k: k.ALIKED().eval().extract_dense_map, PHOTO,
               DETECT),
    "XFeat": ("feature.xfeat", lambda k: k.XFeat().net, GRAY, DETECT),
    "LoFTR": ("feature", lambda k: ImagePair(k.LoFTR(None)), GRAY, "image-matching"),
    "DexiNed": ("models.dexined", lambda k: k.DexiNed(False), PHOTO, "edge-detection"),
    "RRDBNet-x4": ("models.rrdbnet", lambda k: k.RRDBNet(3, 3, 4), PHOTO, ENLARGE),
    "RRDBNet-x2": ("models.rrdbnet", lambda k: k.RRDBNet(3, 3, 2), PHOTO, ENLARGE),
    "SmallSRNet": ("models.small_sr", lambda k: k.SmallSRNet(3, pretrained=False),
                   (1, 1, 224, 224), ENLARGE),
    "YuNet": ("models.yunet.model", lambda k: k.YuNet("test", False), (1, 3, 320, 320),
              "face-detection"),
    "TinyViT": ("models.tiny_vit", lambda k: k.TinyViT(), SMALL_PHOTO, CLASSIFY),
    "TinyViT-5m": ("models.tiny_vit", lambda k: k.TinyViT.from_config("5m"), SMALL_PHOTO, CLASSIFY),
    "VisionTransformer": ("models.vit", lambda k: k.VisionTransformer(), SMALL_PHOTO, FEATURES),
    "MobileViT-xxs": ("models.vit_mobile", lambda k: k.MobileViT("xxs"), PHOTO, FEATURES),
    "MobileViT-s": ("models.vit_mobile", lambda k: k.MobileViT("s"), PHOTO, FEATURES),
    "EfficientViT-b1": (EFFICIENT, lambda k: k.efficientvit_backbone_b1(), SMALL_PHOTO, FEATURES),
    "EfficientViT-l1": (EFFICIENT, lambda k: k.efficientvit_backbone_l1(), SMALL_PHOTO, FEATURES),
}  # fmt: skip


class ImagePair(nn.Module):
    """A matcher that is called with two images instead of a dictionary of them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, image0: torch.Tensor, image1: torch.Tensor) -> Any:
        """Return the points that match."""
        return self.net({"image0": image0, "image1": image1})


names = listed("kornia.feature", ENTRIES)


def build(name: str) -> Net:
    """Build the net on one image, on eight patches, or on two images to match."""
    module, make, shape, task = row_of(ENTRIES, name)
    net = make(import_with_torchvision(f"kornia.{module}"))
    if isinstance(net, nn.Module):
        net.eval()
    num_images = 2 if isinstance(net, ImagePair) else 1
    images = tuple(image(*shape, seed=number) for number in range(num_images))
    return Net(net, images, domain="cv", task=task)
