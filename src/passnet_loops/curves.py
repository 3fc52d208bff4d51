"""The figure of a training: loss, reward, and how often each system is correct."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import has_lines, read_json, read_lines
from passnet_loops.checkpoint import INFO_FILE, TrainInfo
from passnet_loops.comparison import seeds_together
from passnet_loops.sft import CURVE_FILE
from passnet_loops.summaries import SystemSummary


@dataclass(frozen=True)
class CurvePoint:
    """What was logged at a step; None where it was not."""

    step: int
    loss: float | None = None
    eval_loss: float | None = None
    reward: float | None = None


def read_curve(folder: Path) -> list[CurvePoint]:
    """What a run logged, step by step; nothing where it logged nothing."""
    path = folder / CURVE_FILE
    if not has_lines(path):
        return []
    rows = read_lines(path, dict[str, float], skip_torn=True)  # type: ignore[arg-type]
    return [
        CurvePoint(int(row["step"]), row.get("loss"), row.get("eval_loss"), row.get("reward"))
        for row in rows
    ]


def learning_curve(
    runs: Sequence[Path], systems: Sequence[SystemSummary]
) -> list[tuple[int, SystemSummary]]:
    """Fine-tuned llms by the number of structures that they learned from; the last of each number,
    and llms that differ in their seed alone together.

    Nothing where they do not differ in it.
    """
    figures = {each.system: each for each in systems}
    group = {each: name for name, members in seeds_together(runs).items() for each in members}
    infos = {folder.name: read_json(folder / INFO_FILE, TrainInfo) for folder in runs}
    points = {
        info.num_structures: figures[group.get(name, name)]
        for name, info in infos.items()
        if info.stage == "sft" and group.get(name, name) in figures
    }
    return sorted(points.items()) if len(points) > 1 else []


def draw_training(runs: Sequence[Path], systems: Sequence[SystemSummary], file: Path) -> None:
    """Draw the curves of some runs, and the figures of some systems, in a file."""
    from matplotlib.figure import Figure

    curves = {folder: read_curve(folder) for folder in runs}
    reinforced = [f for f, points in curves.items() if any(p.reward is not None for p in points)]
    by_structures = learning_curve(runs, systems)
    num_axes = 2 + bool(reinforced) + bool(by_structures)
    figure = Figure(figsize=(4 * num_axes, 3.6), layout="constrained")
    losses, shares, *others = figure.subplots(1, num_axes)
    rewards = others[0] if reinforced else losses
    if by_structures:
        _draw_learning_curve(others[-1], by_structures)
    for number, (folder, points) in enumerate(curves.items()):
        is_reward_run = folder in reinforced
        for axes, name in ((losses, "loss"), (losses, "eval_loss"), (rewards, "reward")):
            known = [(p.step, getattr(p, name)) for p in points if getattr(p, name) is not None]
            if known and (name == "reward" or not is_reward_run):
                label = f"{folder.name}{', held out' if name == 'eval_loss' else ''}"
                style = {"ls": "--", "lw": 2} if name == "eval_loss" else {"lw": 0.7}
                axes.plot(*zip(*known, strict=True), label=label, color=f"C{number}", **style)
    if reinforced:
        rewards.set(xlabel="step", ylabel="reward")
    losses.set(xlabel="step", ylabel="loss of a word", yscale="log")
    for axes in (losses, rewards):
        if axes.lines:
            axes.legend(fontsize=8)
    names = [each.system for each in systems]
    middles = [100 * each.correct for each in systems]
    errors = [
        [100 * (each.correct - each.correct_low) for each in systems],
        [100 * (each.correct_high - each.correct) for each in systems],
    ]
    shares.barh(names, middles, xerr=errors, color="#9db4d0")
    shares.set(xlabel="correct, %", xlim=(0, 100))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def _draw_learning_curve(axes: Any, points: Sequence[tuple[int, SystemSummary]]) -> None:
    numbers = [number for number, _ in points]
    middles = [100 * each.correct for _, each in points]
    lows = [100 * (each.correct - each.correct_low) for _, each in points]
    highs = [100 * (each.correct_high - each.correct) for _, each in points]
    axes.errorbar(numbers, middles, yerr=[lows, highs], marker="o", capsize=3)
    axes.set(xlabel="structures learned from", ylabel="correct, %", xscale="log", ylim=(0, None))
    axes.set_xticks(numbers, [f"{number:,}" for number in numbers], rotation=45)
    axes.minorticks_off()
