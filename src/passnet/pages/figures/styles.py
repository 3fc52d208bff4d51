"""Figures: their files, the styles of lines, and labels of logarithmic axes."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from passnet.errors import naming


@contextmanager
def new_figure(
    file: Path | StringIO, size: tuple[float, float], **shape: Any
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes, and save it as an SVG or PNG file, or as text in SVG.

    Equal figures give equal files: without a date, and with names of parts that are not random.

    Args:
        file: its path, or where its text goes.
        size: width and height, in inches.
        shape: arguments of `matplotlib.figure.Figure.subplots`.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    yield figure, figure.subplots(**shape)
    suffix, name = (
        (file.suffix, naming(file)) if isinstance(file, Path) else (".svg", nullcontext())
    )
    with rc_context({"svg.hashsalt": "passnet"}), name:
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(file, format=suffix[1:], metadata=metadata)


@dataclass(frozen=True, slots=True)
class LineStyle:
    """The colour, marker and dashes of a line."""

    colour: str
    marker: str
    dashes: str


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Of the palette of Okabe and Ito, which colour-blind people tell apart."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")


def line_style(number: int) -> LineStyle:
    """Return the style of a line by its number; the first 28 differ in at least two ways."""
    return LineStyle(
        COLOURS[number % len(COLOURS)],
        MARKERS[number % len(MARKERS)],
        DASHES[(number + number // len(COLOURS)) % len(DASHES)],
    )


TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100)
FINE_TICKS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.5)
"""Ticks of a logarithmic axis, and of one that spans less than a factor of 4."""


def plain_log_axis(axis: Any, set_scale: Any) -> None:
    """Make an axis logarithmic, with plain numbers on it: 0.5, 1, 2."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axis.get_view_interval()
    set_scale("log")
    ticks = FINE_TICKS if low > 0 and high / low < 4 else TICKS
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
