"""Where what is kept between processes lies, on this machine and for its user."""

import os
import tempfile
from pathlib import Path

CACHE_VARIABLE = "PASSNET_CACHE"


def cache_folder(name: str) -> Path:
    """Where what is kept between processes lies, by its name; made if it is not there."""
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "passnet") / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / "passnet" / name
        folder.mkdir(parents=True, exist_ok=True)
    return folder
