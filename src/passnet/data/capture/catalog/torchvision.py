"""torchvision: classification, segmentation, video and optical flow nets, and dense detectors."""

from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import unknown_entry
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, NetInput, floats, image

ADDS = "the reference nets of PyTorch for images, with video, optical flow and dense detection"
PACKAGES = ("torchvision",)

SIZE, DETECTION_SIZE = 224, 320
SIZES = {"inception_v3": 299, "raft_large": 256, "raft_small": 256, "ssd300_vgg16": 300}
"""Sides of images in pixels, where a net does not take those."""

FRAMES = {"s3d": 16, "mvit_v1_b": 16, "mvit_v2_s": 16}
"""Frames of a clip where the net does not take 8."""

LEFT_OUT = ("quantized_", "keypointrcnn", "maskrcnn")
"""Quantized nets, and detectors that differ from Faster R-CNN only after cropping regions."""


class DenseDetector(nn.Module):
    """A detector up to its scores and boxes for each anchor: later ops have no CPU kernel."""

    def __init__(self, detector: Any) -> None:
        super().__init__()
        self.backbone = detector.backbone
        self.head = detector.rpn.head if hasattr(detector, "rpn") else detector.head

    def forward(self, images: torch.Tensor) -> Any:
        """Return scores and box offsets of all anchors."""
        return self.head(list(self.backbone(images).values()))


def names() -> list[str]:
    """Return all float nets, with each dense part of a detector once."""
    models = import_with_torchvision("torchvision.models")
    return [name for name in models.list_models() if not name.startswith(LEFT_OUT)]


def build(name: str) -> Net:
    """Build a net of the default configuration, with inputs of its task."""
    models = import_with_torchvision("torchvision.models")
    if name not in names():
        raise ValueError(unknown_entry(name, names()))
    group = models.get_model_builder(name).__module__.split(".")[2]
    size = SIZES.get(name, DETECTION_SIZE if group == "detection" else SIZE)
    options: dict[str, Any] = {}
    if group in ("detection", "segmentation"):
        options = {"weights_backbone": None}
    elif name in ("googlenet", "inception_v3"):
        options = {"init_weights": True}
    net = models.get_model(name, weights=None, **options).eval()
    picture = image(1, 3, size, size)
    if group == "detection":
        changes = ("left out: what follows the scores of anchors",)
        return Net(DenseDetector(net), (picture,), {}, "cv", "object-detection", changes)
    if group == "optical_flow":
        pictures = (picture, image(1, 3, size, size, seed=1))
        return Net(net, pictures, {"num_flow_updates": NetInput(4)}, "cv", "optical-flow",
                   ("num_flow_updates 12 -> 4",))  # fmt: skip
    if group == "video":
        frames, axes = FRAMES.get(name, 8), ("batch", "3", "frames", "height", "width")
        clip = floats(1, 3, frames, size, size, axes=axes)
        return Net(net, (clip,), domain="cv", task="video-classification")
    task = "semantic-segmentation" if group == "segmentation" else "image-classification"
    return Net(net, (picture,), domain="cv", task=task)
