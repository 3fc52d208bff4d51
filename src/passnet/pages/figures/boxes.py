"""The boxes of a drawn graph, and what joins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

BoxKind: TypeAlias = Literal["input", "op", "output", "bend"]

CHARACTER_WIDTH = 6.7
"""Of a monospaced font of 11 pixels."""

BOLD_WIDTH = 7.2
LINE_HEIGHT = 14
PADDING = 8


@dataclass(slots=True)
class Box:
    """A box, or a bend of an edge that passes a row; `above` are those that its edges come from.

    `group` is the number of the kernel that it is part of, None of none; `heat` from 0 to 1 tells
    how much of the time it takes. A layout sets `x`, the middle, and `top`, in pixels.
    """

    kind: BoxKind
    lines: tuple[str, ...]
    above: list[Box] = field(default_factory=list)
    group: int | None = None
    heat: float | None = None
    row: int = 0
    x: float = 0.0
    top: float = 0.0

    @property
    def width(self) -> float:
        """In pixels."""
        first = len(self.lines[0]) * BOLD_WIDTH if self.lines else 0.0
        others = max((len(line) for line in self.lines), default=0) * CHARACTER_WIDTH
        return max(first, others) + 2 * PADDING

    @property
    def height(self) -> float:
        """In pixels."""
        return len(self.lines) * LINE_HEIGHT + PADDING if self.lines else 0


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle around the boxes of a group, in pixels."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Placed:
    """What a layout gives beside the places of boxes: the paths of edges, as SVG has them, frames
    by the number of their group, and the size of all, in pixels.
    """

    paths: tuple[str, ...]
    frames: Mapping[int, Frame]
    width: float
    height: float
