"""The published shapes by the axes of a net."""

import pytest

from passnet.data.dataset.variant_sizes import BATCH, IMAGE, TEXT, published_sizes


def test_each_published_set_has_nine_shapes():
    assert [len(published) for published in (TEXT, IMAGE, BATCH)] == [9, 9, 9]
    assert {"batch": 128, "height": 384, "width": 384} in IMAGE
    assert {"batch": 256, "sequence": 16} in TEXT
    assert [sizes["batch"] for sizes in BATCH] == [1, 2, 4, 16, 32, 64, 128, 256, 512]


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({"batch": 1, "sequence": 32}, TEXT),
        ({"batch": 1, "sequence": 32, "source": 64}, TEXT),
        ({"batch": 2, "height": 32, "width": 32}, IMAGE),
        ({"batch": 3, "frames": 8, "height": 32, "width": 32}, BATCH),
        ({"batch": 3, "sequence": 8, "height": 32, "width": 32}, BATCH),
        ({"batch": 3, "time": 96}, BATCH),
        ({"node": 3, "edge": 9}, ()),
    ],
)
def test_axes_choose_the_set(axes, expected):
    assert published_sizes(axes) == expected


def test_the_shape_that_a_net_has_is_left_out():
    published = published_sizes({"batch": 1, "height": 224, "width": 224})
    assert len(published) == 8 and {"batch": 1, "height": 224, "width": 224} not in published
