"""Answers of an llm as pass folders: the inverse of how training data writes them."""

import re

from passnet.errors import ActionError
from passnet.passes.files import Files, created

_FILE = re.compile(
    r"^`(?P<name>[^`\n]+)`:[ \t]*\n\s*^(?P<fence>`{3,})[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


def answer_files(text: str) -> Files | None:
    """The pass folder that a text holds; None where it holds none.

    What stands around and between files is left out; of a file that comes twice the last counts.

    Examples:
        >>> answer_files("First:\\n`a.py`:\\n\\n```python\\nx = 1\\n```\\n")
        {'a.py': 'x = 1\\n'}
        >>> answer_files("I cannot.") is None
        True
    """
    files: Files = {}
    for found in _FILE.finditer(text):
        try:
            files = created(files, found["name"], found["text"])
        except ActionError:
            return None
    return files or None
