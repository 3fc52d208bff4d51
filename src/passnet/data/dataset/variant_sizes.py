"""The sizes at which a net is captured again, by the axes that its inputs name."""

import math
import re
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
    """Return the published shapes for a net with these axes, without its own. Only two-dimensional
    images without other inputs get other sides; videos, volumes, and images with text change their
    batch. A net without a batch (of graphs, say) has no other shapes.

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


FIRST_BATCHES = (16, 4, 64)


def chosen_sizes(axes: Sizes) -> tuple[Sizes, ...]:
    """Return the published shapes for a net in the order of their use. First comes the smallest
    shape that grows in the batch alone, as many nets are made for one side of images; then all from
    the smallest to the largest.

    Examples:
        >>> [name_of(sizes) for sizes in chosen_sizes({"batch": 1, "sequence": 32})[:3]]
        ['batch=1,sequence=16', 'batch=4,sequence=16', 'batch=1,sequence=256']
        >>> chosen_sizes({"batch": 1, "height": 256, "width": 256})[0]
        {'batch': 32, 'height': 256, 'width': 256}
        >>> [sizes["batch"] for sizes in chosen_sizes({"batch": 4, "time": 96})[:3]]
        [16, 64, 1]
    """
    published = published_sizes(axes)
    if all(len(sizes) == 1 for sizes in published):
        first = [{"batch": batch} for batch in FIRST_BATCHES if {"batch": batch} in published]
    else:
        same = [sizes for sizes in published if {**axes, **sizes, "batch": axes["batch"]} == axes]
        first = [sizes for sizes in same if sizes["batch"] > axes["batch"]][:1]
    smallest = sorted(published, key=lambda sizes: math.prod(sizes.values()))
    return (*first, *(sizes for sizes in smallest if sizes not in first))


def name_of(sizes: Sizes, dtype: str | None = None) -> str:
    """Return the name of a variant: its differences from the original.

    Examples:
        >>> name_of({"batch": 4, "sequence": 16}, "float16")
        'batch=4,sequence=16,float16'
    """
    parts = [f"{axis}={size}" for axis, size in sizes.items()]
    return ",".join([*parts, dtype] if dtype else parts)


_NAME = re.compile(r"(?:[^\W\d]\w*=\d+,)*(?:[^\W\d]\w*=\d+|(?P<dtype>b?float16|float32))")


def is_variant_name(name: str) -> bool:
    """Return whether a text is a name from `name_of`.

    Examples:
        >>> is_variant_name("batch=4,sequence=16"), is_variant_name("float16")
        (True, True)
        >>> is_variant_name("batch"), is_variant_name("float16,batch=4"), is_variant_name("")
        (False, False, False)
    """
    return _NAME.fullmatch(name) is not None


def names_dtype(name: str) -> bool:
    """Return whether the name of a variant includes another dtype.

    Examples:
        >>> names_dtype("batch=4,bfloat16"), names_dtype("batch=4")
        (True, False)
    """
    match = _NAME.fullmatch(name)
    return match is not None and match["dtype"] is not None
