"""The sizes at which a net is captured again, by the axes that its inputs name."""

from collections.abc import Mapping
from typing import TypeAlias

Sizes: TypeAlias = Mapping[str, int]
"""Name of an axis -> its size."""

_TEXT = (
    (1, 16), (4, 16), (1, 256), (16, 16), (4, 256), (256, 16), (1, 4096), (16, 256), (16, 4096),
)  # fmt: skip

TEXT: tuple[Sizes, ...] = tuple({"batch": batch, "sequence": size} for batch, size in _TEXT)
IMAGE: tuple[Sizes, ...] = tuple(
    {"batch": batch, "height": side, "width": side}
    for batch in (1, 32, 128)
    for side in (224, 256, 384)
)
BATCH: tuple[Sizes, ...] = tuple({"batch": 2**power} for power in (0, 1, 2, 4, 5, 6, 7, 8, 9))
"""The published shapes of nets for text, for images, and for anything in batches
(reference: mining, generalisation)."""


def published_sizes(axes: Sizes) -> tuple[Sizes, ...]:
    """The published shapes for a net, without the one that it has.

    Images are two-dimensional and come alone: videos, volumes, and images beside text change their
    batch. A net without a batch (of graphs, say) has no other shapes. `axes` are the sizes of all
    axes that the net's inputs name.

    Examples:
        >>> published_sizes({"batch": 16, "sequence": 256, "text": 8})[-1]
        {'batch': 16, 'sequence': 4096}
        >>> len(published_sizes({"batch": 1, "frames": 8, "height": 224, "width": 224}))
        8
    """
    names = set(axes)
    published: tuple[Sizes, ...] = ()
    if names == {"batch", "height", "width"}:
        published = IMAGE
    elif {"batch", "sequence"} <= names and not names & {"height", "width"}:
        published = TEXT
    elif "batch" in names:
        published = BATCH
    return tuple(sizes for sizes in published if {**axes, **sizes} != dict(axes))


def name_of(sizes: Sizes, dtype: str | None = None) -> str:
    """How a variant is named: what differs from the original.

    Examples:
        >>> name_of({"batch": 4, "sequence": 16}, "float16")
        'batch=4,sequence=16,float16'
    """
    parts = [f"{axis}={size}" for axis, size in sizes.items()]
    return ",".join([*parts, dtype] if dtype else parts)
