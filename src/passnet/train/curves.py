"""The figure of a training: loss, reward, and how often each system is correct."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.records.serialise import read_lines
from passnet.train.evaluate import SystemSummary
from passnet.train.sft import CURVE_FILE


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
    if not path.exists():
        return []
    rows = read_lines(path, dict[str, float], skip_torn=True)  # type: ignore[arg-type]
    return [
        CurvePoint(int(row["step"]), row.get("loss"), row.get("eval_loss"), row.get("reward"))
        for row in rows
    ]


def draw_training(runs: Sequence[Path], systems: Sequence[SystemSummary], file: Path) -> None:
    """Draw the curves of some runs, and the figures of some systems, in a file."""
    from matplotlib.figure import Figure

    curves = {folder: read_curve(folder) for folder in runs}
    reinforced = [f for f, points in curves.items() if any(p.reward is not None for p in points)]
    figure = Figure(figsize=(12 if reinforced else 8, 3.6), layout="constrained")
    losses, shares, *others = figure.subplots(1, 3 if reinforced else 2)
    rewards = others[0] if others else losses
    for folder, points in curves.items():
        is_reward_run = folder in reinforced
        for axes, name in ((losses, "loss"), (losses, "eval_loss"), (rewards, "reward")):
            known = [(p.step, getattr(p, name)) for p in points if getattr(p, name) is not None]
            if known and (name == "reward" or not is_reward_run):
                label = f"{folder.name}{', held out' if name == 'eval_loss' else ''}"
                axes.plot(*zip(*known, strict=True), label=label)
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
