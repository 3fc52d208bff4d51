"""Makes torchvision importable beside a torch that its compiled library does not fit."""

import importlib
import sys
from typing import Any

import torch

_libraries: list[torch.library.Library] = []


def import_torchvision() -> None:
    """Import torchvision; where its compiled ops are missing, declare their schemas first.

    The wheel on PyPI is built against CUDA; beside a CPU build of torch its library does not
    load and the import stops at the first op it cannot find. With the schemas declared the rest of
    torchvision works; the ops themselves have no kernels and fail when called. Nets that timm and
    torchvision classify images with do not call them.

    Raises:
        ImportError: torchvision is not installed.
    """
    try:
        import torchvision  # noqa: F401
    except RuntimeError as cause:
        if "does not exist" not in str(cause):
            raise
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for op in ("nms", "qnms"):  # it registers shape functions for them while it is imported
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _libraries.append(library)  # the declarations live as long as the library object
        import torchvision  # noqa: F401


def import_with_torchvision(package: str) -> Any:
    """A package, or a module of it, that torchvision is imported for first.

    Raises:
        ImportError: it, or torchvision, is not installed.
    """
    import_torchvision()
    return importlib.import_module(package)
