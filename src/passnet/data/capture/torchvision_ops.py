"""Makes torchvision importable beside a torch that its compiled library does not fit."""

import importlib
import sys
from typing import Any

import torch

MISSING_OP = "operator torchvision::"
"""What an error says that comes of a torchvision whose compiled library does not load."""

_libraries: list[torch.library.Library] = []


def import_torchvision() -> None:
    """Import torchvision; where its compiled ops are missing, declare their schemas first.

    The wheel on PyPI is built against CUDA; beside a CPU build of torch its library does not
    load and the import stops at the first op it cannot find. With the schemas declared the rest of
    torchvision works; the ops themselves have no kernels and fail when called. Nets that timm and
    torchvision classify images with do not call them.

    Raises:
        ImportError: torchvision is not installed, or broken in another way.
    """
    try:
        import torchvision  # noqa: F401
    except ImportError:
        raise
    except Exception as cause:  # boundary: a library raises anything
        if not (MISSING_OP in str(cause) and "does not exist" in str(cause)):
            text = f"torchvision cannot be imported: {type(cause).__name__}: {cause}"
            raise ImportError(text, name="torchvision") from cause
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
