"""How this package starts Python for its own processes: they import nothing that merely lies in the
current directory, which may be a pass folder.
"""

import os
import sys


def python_command(*words: str) -> list[str]:
    """The command that runs this Python with some words, and does not import from where it runs."""
    return [sys.executable, "-P", *words]


def python_environment() -> dict[str, str]:
    """The environment of this process for another Python, which may run in another directory.

    An empty entry of PYTHONPATH, as `:/some/folder` begins with, would stand for the current
    directory, and is left out.
    """
    if "PYTHONPATH" not in os.environ:
        return dict(os.environ)
    folders = [folder for folder in os.environ["PYTHONPATH"].split(os.pathsep) if folder]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, folders))}
