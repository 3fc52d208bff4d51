"""pytorchcv: nets for images of most published architectures, and for speech by convolutions."""

from typing import Any

from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, floats, image, integers

ADDS = "image nets of many papers, some in no other library; segmentation, poses, flow and speech"
PACKAGES = ("pytorchcv", "librosa")

SAME = (
    "_cifar100", "_svhn", "_cub", "_voc", "_ade20k", "_nr", "_fr", "_de", "_it", "_es", "_ca",
    "_pl", "_ru", "_ru34", "flame",
)  # fmt: skip
"""Endings of nets that differ from others in their data or language alone."""

TASKS = {
    "cityscapes": "image-segmentation", "celebamaskhq": "image-segmentation",
    "pose": "keypoint-detection", "centernet": "object-detection", "raft": "optical-flow",
    "coco": "image-segmentation", "jasper": "automatic-speech-recognition",
    "quartznet": "automatic-speech-recognition",
}  # fmt: skip
"""Task by a part of the name, the first that fits; the others classify images."""

FRAMES = 400


def _provider() -> Any:
    return import_with_torchvision("pytorchcv.model_provider")


def names() -> list[str]:
    """Return all nets, of those for several data sets or languages one."""
    return [name for name in _provider()._models if not name.endswith(SAME)]


def build(name: str) -> Net:
    """Build a net, for an image of its own size, or for four seconds of speech as a spectrogram."""
    net = _provider().get_model(name).eval()
    task = next((TASKS[part] for part in TASKS if part in name), "image-classification")
    if task == "automatic-speech-recognition":
        spectrogram = floats(1, 64, FRAMES, axes=("batch", "mels", "frames"))
        net.from_audio = False  # its own spectrogram reads lengths as numbers
        lengths = integers(FRAMES + 1, 1, low=FRAMES, axes=("batch",))
        return Net(net, (spectrogram, lengths), domain="audio", task=task)
    size = getattr(net, "in_size", (224, 224))
    images = tuple(image(1, 3, *size) for _ in range(2 if task == "optical-flow" else 1))
    return Net(net, images, domain="cv", task=task)
