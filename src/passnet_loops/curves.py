"""The figure of a training: the loss by step, and how often each system is correct."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import has_lines, read_lines
from passnet_loops.checkpoint import read_info
from passnet_loops.comparison import seeds_together
from passnet_loops.sft import CURVE_FILE
from passnet_loops.summaries import SystemSummary


@dataclass(frozen=True)
class CurvePoint:
    """The losses at a step; None where there is none."""

    step: int
    loss: float | None = None
    eval_loss: float | None = None


def read_curve(folder: Path) -> list[CurvePoint]:
    """Read what a run logged, step by step; nothing where it logged nothing."""
    path = folder / CURVE_FILE
    if not has_lines(path):
        return []
    rows = read_lines(path, dict[str, float], skip_torn=True)  # type: ignore[arg-type]
    return [CurvePoint(int(row["step"]), row.get("loss"), row.get("eval_loss")) for row in rows]


def learning_curve(
    runs: Sequence[Path], systems: Sequence[SystemSummary]
) -> list[tuple[int, SystemSummary]]:
    """Return LLMs by the number of structures that they learned from; nothing if all have one.

    LLMs that differ in their seed alone are one point; of others with a number, the last.
    """
    figures = {system.system: system for system in systems}
    group = {run: name for name, members in seeds_together(runs).items() for run in members}
    infos = {folder.name: read_info(folder) for folder in runs}
    points = {
        info.num_structures: figures[group.get(name, name)]
        for name, info in infos.items()
        if info.stage == "sft" and group.get(name, name) in figures
    }
    return sorted(points.items()) if len(points) > 1 else []


def draw_training(runs: Sequence[Path], systems: Sequence[SystemSummary], file: Path) -> None:
    """Draw the losses of runs and the figures of systems in a file."""
    from matplotlib.figure import Figure

    by_structures = learning_curve(runs, systems)
    num_axes = 2 + bool(by_structures)
    figure = Figure(figsize=(4 * num_axes, 3.6), layout="constrained")
    losses, shares, *more_axes = figure.subplots(1, num_axes)
    for axes in more_axes:
        _draw_points(axes, by_structures)
    for number, folder in enumerate(runs):
        points = read_curve(folder)
        for name in ("loss", "eval_loss"):
            values = [(p.step, getattr(p, name)) for p in points if getattr(p, name) is not None]
            if values:
                label = f"{folder.name}{', held out' if name == 'eval_loss' else ''}"
                style = {"ls": "--", "lw": 2} if name == "eval_loss" else {"lw": 0.7}
                losses.plot(*zip(*values, strict=True), label=label, color=f"C{number}", **style)
    losses.set(xlabel="step", ylabel="loss of a word", yscale="log")
    if losses.lines:
        losses.legend(fontsize=8)
    middles, errors = _percentages(systems)
    names = [system.system for system in systems]
    shares.barh(names, middles, xerr=errors, color="#9db4d0")
    shares.set(xlabel="correct, %", xlim=(0, 100))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def _draw_points(axes: Any, points: Sequence[tuple[int, SystemSummary]]) -> None:
    numbers = [number for number, _ in points]
    middles, errors = _percentages([system for _, system in points])
    axes.errorbar(numbers, middles, yerr=errors, marker="o", capsize=3)
    axes.set(xlabel="structures learned from", ylabel="correct, %", xscale="log", ylim=(0, None))
    axes.set_xticks(numbers, [f"{number:,}" for number in numbers], rotation=45)
    axes.minorticks_off()


def _percentages(systems: Sequence[SystemSummary]) -> tuple[list[float], list[list[float]]]:
    """Return the correct shares in percent, and how far their intervals reach down and up."""
    middles = [100 * system.correct for system in systems]
    downs = [100 * (system.correct - system.correct_low) for system in systems]
    ups = [100 * (system.correct_high - system.correct) for system in systems]
    return middles, [downs, ups]
