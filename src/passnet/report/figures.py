"""Figures of a run; matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from passnet.bench.scores import CandidateScore


def draw_es(scores: Sequence[CandidateScore], path: Path) -> None:
    """ES_t over the tolerance level, a line a candidate, as an SVG or PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for score in scores:
        es = score.suite.es
        label = f"{score.candidate} (AS {score.suite.score:.3f})"
        axes.plot(list(es), list(es.values()), marker="o", markersize=3, label=label)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_xlabel("tolerance level t")
    axes.set_ylabel("ES_t")
    axes.set_title("Error-aware Speedup Score by tolerance")
    axes.legend(fontsize=8)
    figure.savefig(path)
    plt.close(figure)
