"""ultralytics: YOLO and RT-DETR of every generation and task, from the packaged YAML files.

The library is under the AGPL-3.0: whoever serves what includes it must offer their source.
"""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import torch

from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, floats, image

ADDS = (
    "YOLO v3 to 26 and RT-DETR (detection, segmentation, pose, oriented boxes, depth, classes): "
    "multi-scale feature pyramids with decoded anchors; the library is AGPL-3.0"
)
PACKAGES = ("ultralytics", "torchvision")

TASKS = {
    "classify": ("ClassificationModel", "image-classification"),
    "detect": ("DetectionModel", "object-detection"),
    "segment": ("SegmentationModel", "instance-segmentation"),
    "semantic": ("SemanticSegmentationModel", "semantic-segmentation"),
    "pose": ("PoseModel", "pose-estimation"),
    "obb": ("OBBModel", "oriented-object-detection"),
    "depth": ("DepthModel", "depth-estimation"),
}
"""Task of the library -> class in `ultralytics.nn.tasks`, unless the file's name says, and our
task.
"""


def names() -> list[str]:
    """Return every file in each of its scales, as `yolo11n-seg`."""
    utils = _import("ultralytics.utils")
    entries = []
    for path in sorted(Path(utils.ROOT, "cfg", "models").rglob("*.yaml")):
        scales = utils.YAML.load(path).get("scales")
        if not isinstance(scales, dict) or re.search("resnet|rtdetr-", path.stem):
            entries.append(path.stem)
        else:  # the letter of each scale after the version, where the loader looks for it
            entries += [re.sub(r"(?<=\d)(?=-|$)", scale, path.stem, count=1) for scale in scales]
    return entries


def build(name: str) -> Net:
    """Build the net in use, on one square image; it returns decoded boxes before selection."""
    tasks = _import("ultralytics.nn.tasks")
    config = tasks.yaml_model_load(f"{name}.yaml")
    task = tasks.guess_model_task(config) or "detect"
    class_name, task_name = TASKS[task]
    for word, named_class in (("rtdetr", "RTDETRDetectionModel"), ("world", "WorldModel")):
        class_name = named_class if word in name else class_name
    if name.startswith("yoloe"):
        class_name = "YOLOESegModel" if task == "segment" else "YOLOEModel"
    net: Any = getattr(tasks, class_name)(config, verbose=False).eval()
    head = net.model[-1]
    if isinstance(getattr(head, "stride", None), torch.Tensor):
        head.stride = head.stride.tolist()  # a number read from a tensor would break the graph
    side = 224 if task == "classify" else 640  # pixels
    picture = image(1, 3, side, side)
    if class_name == "WorldModel":
        classes = floats(1, 80, 512, axes=("batch", "class", "512"))
        return Net(net.predict, (picture,), {"txt_feats": classes}, "cv", task_name)
    return Net(net, (picture,), domain="cv", task=task_name)


def _import(module: str) -> Any:
    """Import the library without network access, and with its settings in a temporary folder."""
    os.environ.setdefault("YOLO_CONFIG_DIR", str(Path(tempfile.gettempdir(), "passnet")))
    os.environ.setdefault("YOLO_OFFLINE", "true")
    os.environ.setdefault("YOLO_AUTOINSTALL", "false")
    os.environ.setdefault("YOLO_VERBOSE", "false")
    return import_with_torchvision(module)
