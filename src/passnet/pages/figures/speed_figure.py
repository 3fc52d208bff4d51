"""The figure of an optimised net's speed by the error that is allowed."""

from collections.abc import Sequence
from io import StringIO

from passnet.optimizer.record import BackendRecord, SignatureRecord
from passnet.pages.figures.styles import COLOURS, new_figure, plain_log_axis

ERRORS = (1e-7, 1.0)
"""The errors that the axis spans."""


def fastest_by_error(form: SignatureRecord) -> list[BackendRecord]:
    """Return the backends that are faster than all with a smaller error, the exact ones first."""
    timed = [each for each in form.engines if each.speedup is not None and each.error is not None]
    found: list[BackendRecord] = []
    for each in sorted(timed, key=lambda each: (each.error or 0.0, -(each.speedup or 0.0))):
        if not found or (each.speedup or 0.0) > (found[-1].speedup or 0.0):
            found.append(each)
    return found


def speed_figure(form: SignatureRecord) -> str:
    """Return the figure of an input signature as SVG, to be put into a page.

    It is ES_t of a whole net: the speedup of the fastest backend whose relative error is at most
    the tolerance, by the tolerance.
    """
    backends, text = fastest_by_error(form), StringIO()
    errors = [max(each.error or 0.0, ERRORS[0]) for each in backends]
    speeds = [each.speedup or 1.0 for each in backends]
    with new_figure(text, (7.5, 3.2)) as (_, axes):
        axes.step([*errors, ERRORS[1]], [*speeds, speeds[-1]], where="post", color=COLOURS[0])
        axes.plot(errors, speeds, "o", color=COLOURS[0])
        for each, error, speed in zip(backends, errors, speeds, strict=True):
            shown = {"xytext": (4, 5), "textcoords": "offset points", "fontsize": 8}
            axes.annotate(each.engine, (error, speed), **shown)
        axes.set_xscale("log")
        axes.set(
            xlim=(ERRORS[0] / 2, ERRORS[1]),
            ylim=(min(1.0, *speeds) * 0.9, max(speeds) * 1.25),
            xlabel="relative error that is allowed",
            ylabel="times as fast as eager PyTorch",
        )
        plain_log_axis(axes.yaxis, axes.set_yscale)
        axes.grid(color="#dddddd", linewidth=0.6)
    return text.getvalue()[text.getvalue().index("<svg") :]


def errors_in_words(backends: Sequence[BackendRecord]) -> str:
    """Return what each allowed error buys, as a sentence."""
    return "; ".join(
        f"{each.speedup:.2f} at an error of {each.error:.0e} ({each.engine})" for each in backends
    )
