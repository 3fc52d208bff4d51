"""Makes torchaudio importable beside a torch that its compiled library does not fit."""

import importlib
import sys
from types import ModuleType
from typing import Any

from passnet.data.capture.torchvision_ops import import_torchvision

EXTENSION = "torchaudio._extension"


def import_torchaudio() -> None:
    """Import torchaudio; where its compiled library does not load, without it.

    The wheel on PyPI is built against CUDA; beside a CPU build of torch the import stops at its
    library. Only alignment for CTC and some filters are compiled; nets do without.

    Raises:
        ImportError: torchaudio is not installed.
    """
    try:
        import torchaudio  # noqa: F401
    except OSError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchaudio"]:
            del sys.modules[name]
        absent: Any = ModuleType(EXTENSION)
        absent._IS_TORCHAUDIO_EXT_AVAILABLE = absent._IS_ALIGN_AVAILABLE = False
        absent.fail_if_no_align = lambda function: function
        absent._load_lib = lambda _: False
        sys.modules[EXTENSION] = absent
        import torchaudio  # noqa: F401


def import_with_torchaudio(package: str) -> Any:
    """A package, or a module of it, that torchaudio is imported for first, and torchvision too.

    Raises:
        ImportError: it, or one of the two, is not installed.
    """
    import_torchvision()
    import_torchaudio()
    return importlib.import_module(package)
