"""ultralytics: YOLO and RT-DETR of every generation and task, from the packaged YAML files.

The library is under the AGPL-3.0: whoever serves what includes it must offer their source.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from passnet.extract.net import Net, floats, image
from passnet.extract.torchvision_ops import import_torchvision

ADDS = (
    "YOLO v3 to 26 and RT-DETR (detection, segmentation, pose, oriented boxes, depth, classes): "
    "multi-scale feature pyramids with decoded anchors; the library is AGPL-3.0"
)
PACKAGES = ("ultralytics", "torchvision")

IMAGE_SIZES = {"classify": 224}
"""Task -> pixels on a side, where it is not 640."""

CLASSES = {
    "classify": "ClassificationModel",
    "detect": "DetectionModel",
    "segment": "SegmentationModel",
    "semantic": "SemanticSegmentationModel",
    "pose": "PoseModel",
    "obb": "OBBModel",
    "depth": "DepthModel",
}
"""Task -> class in `ultralytics.nn.tasks`, where the name of the file does not say otherwise."""

TASKS = {
    "classify": "image-classification",
    "detect": "object-detection",
    "segment": "instance-segmentation",
    "semantic": "semantic-segmentation",
    "pose": "pose-estimation",
    "obb": "oriented-object-detection",
    "depth": "depth-estimation",
}


def names() -> Sequence[str]:
    """Every file in each of its scales, as `yolo11n-seg`."""
    _ready()
    from ultralytics.utils import ROOT, YAML

    found = []
    for path in sorted(Path(ROOT, "cfg", "models").rglob("*.yaml")):
        scales = YAML.load(path).get("scales")
        scaled = isinstance(scales, dict) and not re.search("resnet|rtdetr-", path.stem)
        found += _scaled(path.stem, scales) if scaled else [path.stem]
    return found


def build(name: str) -> Net:
    """The net as it is used, on one square image; what it returns is decoded boxes, not chosen."""
    _ready()
    from ultralytics.nn import tasks

    config = tasks.yaml_model_load(f"{name}.yaml")
    task = tasks.guess_model_task(config) or "detect"
    kind = CLASSES[task]
    for word, other in (("rtdetr", "RTDETRDetectionModel"), ("world", "WorldModel")):
        kind = other if word in name else kind
    if name.startswith("yoloe"):
        kind = "YOLOESegModel" if task == "segment" else "YOLOEModel"
    net: Any = getattr(tasks, kind)(config, verbose=False).eval()
    head = net.model[-1]
    if isinstance(getattr(head, "stride", None), torch.Tensor):
        head.stride = head.stride.tolist()  # a number read from a tensor would break the graph
    side = IMAGE_SIZES.get(task, 640)
    kwargs = {}
    if kind == "WorldModel":
        kwargs["txt_feats"] = floats(1, 80, 512, axes=("batch", "class", "512"))
    return Net(
        net.predict if kwargs else net,
        (image(1, 3, side, side),),
        kwargs,
        domain="cv",
        task=TASKS[task],
    )


def _scaled(stem: str, scales: dict[str, Any]) -> list[str]:
    """The stem with the letter of each scale after its version, where the loader looks for it."""
    return [re.sub(r"(?<=\d)(?=-|$)", scale, stem, count=1) for scale in scales]


def _ready() -> None:
    """See to it that the import asks no network and writes its settings to a temporary folder."""
    os.environ.setdefault("YOLO_CONFIG_DIR", str(Path(tempfile.gettempdir(), "passnet")))
    os.environ.setdefault("YOLO_OFFLINE", "true")
    os.environ.setdefault("YOLO_AUTOINSTALL", "false")
    os.environ.setdefault("YOLO_VERBOSE", "false")
    import_torchvision()
