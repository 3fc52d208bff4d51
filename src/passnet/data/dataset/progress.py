"""What long work reports on its way: a caller may ask to be told how much there is, and of each."""

from collections.abc import Callable
from typing import TypeAlias

ProgressStep: TypeAlias = Callable[..., None]
"""Called after each, with a word for what it was or with nothing."""


def silent(*_: object) -> ProgressStep:
    """Announces nothing: for work that nobody watches."""
    return lambda *_: None
