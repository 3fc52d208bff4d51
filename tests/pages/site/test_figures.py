"""Figures of strangers on pages."""

import pytest

from passnet.pages.figures.inert_svg import inert_svg

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="{}"/>'


@pytest.mark.parametrize("box", ["", "1", "1 2 3", "0 0 1 2 3", ",,"])
def test_a_view_box_that_browsers_ignore_is_ignored(box: str) -> None:
    assert b'width="300" height="150"' in inert_svg(SVG.format(box).encode())


def test_a_figure_has_the_size_of_its_view_box() -> None:
    assert b'width="40" height="30"' in inert_svg(SVG.format("0, 0, 40, 30").encode())
