"""The growth of the captured graphs with the number of nets, and its fit by a power of that number.

Run it with `python recipes/growth.py captures`: it prints the table of captures/README.md, and
draws `captures/growth.svg`. Nets are taken in several random orders. A net brings the graphs, and
the structures, that no earlier one had; the curve is the mean over the orders.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from passnet.core.records.serialise import decode
from passnet.data.capture.store import GraphSource, read_set
from passnet.pages.figures.styles import COLOURS, new_figure

ORDERS, POINTS = 200, 40
FITTED_SHARE = 0.1
"""The fit leaves out the first tenth of the nets."""

PUBLISHED = (100_000, 18_086)
"""Nets and distinct graphs. Source: PassNet paper, Section 3."""


def main(folder: Path) -> None:
    """Print table and fit, and draw the curve."""
    found = read_found(folder)
    counts = np.unique(np.geomspace(1, len(found["graphs"]), POINTS).astype(int))
    curves = {name: growth(nets, counts) for name, nets in found.items()}
    fits = {name: power_fit(counts, curve) for name, curve in curves.items()}
    print("| nets | graphs | structures |\n|--:|--:|--:|")
    for at in sorted(range(len(counts) - 1, 0, -6)):
        print(f"| {counts[at]:,} | {curves['graphs'][at]:,.0f} | {curves['structures'][at]:,.0f} |")
    for name, (factor, power) in fits.items():
        expected = factor * PUBLISHED[0] ** power
        print(f"{name}: {factor:.2f} nets^{power:.3f}; of {PUBLISHED[0]:,} nets {expected:,.0f}")
    draw(counts, curves, fits, folder / "growth.svg")


def read_found(folder: Path) -> dict[str, list[list[str]]]:
    """Return the graphs, and the structures, of each net of a set, in the order of names."""
    found: dict[str, dict[str, set[str]]] = {"graphs": {}, "structures": {}}
    for file in read_set(folder)[1]:
        table = pq.read_table(file, columns=["full", "structure", "sources"])
        for row in table.to_pylist():
            for source in decode(row["sources"], tuple[GraphSource, ...], str(file)):
                found["graphs"].setdefault(source.entry, set()).add(row["full"])
                found["structures"].setdefault(source.entry, set()).add(row["structure"])
    return {name: [sorted(nets[net]) for net in sorted(nets)] for name, nets in found.items()}


def growth(nets: Sequence[Sequence[str]], counts: Sequence[int], seed: int = 0) -> np.ndarray:
    """Return how many distinct things so many nets have, as the mean over random orders.

    Examples:
        >>> growth([["a"], ["a"], ["a", "b", "c"]], [3]).tolist()
        [3.0]
    """
    random = np.random.default_rng(seed)
    totals = np.zeros(len(counts))
    for _ in range(ORDERS):
        known: set[str] = set()
        sizes = []
        for net in random.permutation(len(nets)):
            known.update(nets[net])
            sizes.append(len(known))
        totals += np.array(sizes)[np.asarray(counts) - 1]
    return totals / ORDERS


def power_fit(counts: Sequence[int], curve: Sequence[float]) -> tuple[float, float]:
    """Return factor and power that fit a curve, by least squares of logarithms.

    Examples:
        >>> [round(number, 3) for number in power_fit([100, 400, 900], [20, 40, 60])]
        [2.0, 0.5]
    """
    used = np.asarray(counts) >= FITTED_SHARE * counts[-1]
    power, shift = np.polyfit(np.log(np.asarray(counts)[used]), np.log(np.asarray(curve)[used]), 1)
    return float(np.exp(shift)), float(power)


def draw(
    counts: Sequence[int],
    curves: dict[str, np.ndarray],
    fits: dict[str, tuple[float, float]],
    path: Path,
) -> None:
    """Draw curves and fits on logarithmic axes, with the published point."""
    far = np.geomspace(FITTED_SHARE * counts[-1], PUBLISHED[0], 20)
    with new_figure(path, (7, 4)) as (_, axes):
        for number, (name, curve) in enumerate(curves.items()):
            (factor, power), colour = fits[name], COLOURS[number]
            axes.plot(counts, curve, color=colour, label=f"{name} of nets in use")
            axes.plot(far, factor * far**power, ":", color=colour, label=f"nets^{power:.2f}")
        axes.plot(*PUBLISHED, "k*", label="published graphs")
        axes.set(xscale="log", yscale="log", xlabel="nets", ylabel="distinct")
        axes.legend(frameon=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
