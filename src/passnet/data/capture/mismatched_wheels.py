"""Imports of torchvision and torchaudio whose compiled code, built for CUDA, does not fit torch."""

import importlib
import sys
from types import ModuleType
from typing import Any

import torch

MISSING_OP = "operator torchvision::"
"""The text of the error when the compiled library of torchvision does not load."""

AUDIO_EXTENSION = "torchaudio._extension"

_libraries: list[torch.library.Library] = []


def import_torchvision() -> None:
    """Import torchvision; declare its compiled ops, which then fail when called, if missing."""
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
    """Import torchvision, then a package or a module that needs it."""
    import_torchvision()
    return importlib.import_module(package)


def import_torchaudio() -> None:
    """Import torchaudio; where its compiled library does not load, without that."""
    try:
        import torchaudio  # noqa: F401
    except OSError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchaudio"]:
            del sys.modules[name]
        absent: Any = ModuleType(AUDIO_EXTENSION)
        absent._IS_TORCHAUDIO_EXT_AVAILABLE = absent._IS_ALIGN_AVAILABLE = False
        absent.fail_if_no_align = lambda function: function
        absent._load_lib = lambda _: False
        sys.modules[AUDIO_EXTENSION] = absent
        import torchaudio  # noqa: F401


def import_with_torchaudio(package: str) -> Any:
    """Import torchvision and torchaudio, then a package or a module that needs them."""
    import_torchvision()
    import_torchaudio()
    return importlib.import_module(package)
