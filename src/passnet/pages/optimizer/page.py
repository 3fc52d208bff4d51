"""The page of an optimised net: one HTML file that opens from disk and needs nothing else."""

from collections.abc import Iterator, Mapping, Sequence

from passnet.optimizer.record import EngineRecord, FormRecord, OptimizedRecord
from passnet.pages.optimizer.page_blocks import blocks_section
from passnet.pages.optimizer.page_passes import ranges_section, trials_section
from passnet.pages.optimizer.page_style import STYLE
from passnet.pages.optimizer.page_text import in_ms, interval, shown, way_link
from passnet.passes.library.kept import KeptPass

_NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'"
"""What the browser may load and run for this page: its style."""


def optimized_page(record: OptimizedRecord, kept: Sequence[KeptPass] = ()) -> str:
    """The page of a record, with the judged passes that its claims about passes rest on."""
    judged = {each.entry.digest: each for each in kept}
    anchors = {digest: f"trial-{number}" for number, digest in enumerate(judged)}
    parts = [*_head(record)]
    for number, form in enumerate(record.forms):
        parts += _form(form, number, record.net, anchors)
    parts += trials_section([*judged.values()], anchors)
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ELSE}">'
        f"<title>{shown(record.net)}, optimised</title><style>{STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _head(record: OptimizedRecord) -> Iterator[str]:
    made = record.environment
    threads = "one thread" if record.num_threads == 1 else f"{record.num_threads} threads"
    folded = "Weights will not change." if record.freeze else "Weights may change."
    yield f"<h1>{shown(record.net)}, optimised</h1>"
    yield (
        f"<p>Measured on {shown(made.cpu)}, {threads}, torch {shown(made.torch)}, passnet "
        f"{shown(record.passnet)}. {folded} All times of a form were taken in turns, in one "
        "process; each way was compared with eager torch on fresh and hostile inputs first. "
        "The figures are those of <code>optimized.json</code> beside this page.</p>"
    )


def _form(form: FormRecord, number: int, net: str, trials: Mapping[str, str]) -> Iterator[str]:
    yield f"<h2>Inputs {shown(', '.join(form.inputs))}</h2>"
    yield (
        f"<p><b>{way_link(form, number, form.chosen)}</b> is used: {in_ms(form.ms)} ms a call, "
        f"<b>{form.speedup:.2f}</b> times as fast as {way_link(form, number, 'eager')} torch "
        f"(95 % interval {form.speedup_low:.2f} to {form.speedup_high:.2f})."
        f"{_otherwise(form, number)}</p>"
    )
    yield "<h3>The ways to run the net</h3>"
    yield (
        '<div class="wide" role="region" tabindex="0" aria-label="Ways"><table><thead><tr>'
        '<th>way</th><th>what it is</th><th class="n">ms</th><th class="n">as torch calls it</th>'
        '<th class="n">over eager (95 %)</th><th></th><th class="n">error</th>'
        '<th class="n">built in s</th></tr></thead><tbody>'
    )
    longest = max((each.used_ms or 0.0 for each in form.engines), default=0.0)
    order = sorted(
        range(len(form.engines)), key=lambda index: form.engines[index].used_ms or float("inf")
    )
    for index in order:
        yield _way(form.engines[index], f"form-{number}-way-{index}", form, longest)
    yield "</tbody></table></div>"
    yield (
        '<p class="quiet">ms: a call of the returned net, with its checks; of eager torch without. '
        "error: the largest relative error of an output, beside float64 where the net runs in it; "
        "in brackets eager torch's own. over eager: over the rounds in which both were timed; what "
        "is far slower than the fastest way is timed in fewer.</p>"
    )
    yield from blocks_section(form, number, net, trials)
    yield from ranges_section(form, number, trials)


def _otherwise(form: FormRecord, number: int) -> str:
    """What runs the calls that the chosen way does not, as a sentence; none for eager torch."""
    if not form.instead:
        return ""
    return (
        " Calls that it does not run because of the values of weights or arguments are run by "
        f"{way_link(form, number, form.instead)}."
    )


def _way(engine: EngineRecord, anchor: str, form: FormRecord, longest: float) -> str:
    """The row of a way to run the net."""
    is_used = engine.engine == form.chosen
    name = shown(engine.engine) + (" (in use)" if is_used else "")
    row = f'<tr id="{anchor}"{" class=used" if is_used else ""}><td>{name}</td>'
    says = f'<td class="quiet">{shown(engine.says)}</td>'
    ms = engine.used_ms
    if ms is None:
        why = f": {engine.reason}" if engine.reason else ""
        return f'{row}<td colspan="7" class="quiet">{shown(engine.status + why)}</td></tr>'
    speedup = engine.speedup or form.eager_ms / ms  # older records have none
    error = "–" if engine.error is None else f"{engine.error:.0e}"
    if engine.eager_error is not None:
        error += f" ({engine.eager_error:.0e})"
    return (
        f'{row}{says}<td class="n">{in_ms(ms)}</td><td class="n">{in_ms(engine.plain_ms)}</td>'
        f'<td class="n">{interval(speedup, engine.speedup_low, engine.speedup_high)}</td>'
        f'<td class="bars"><span class="bar" style="width:{100 * ms / longest:.1f}%"></span></td>'
        f'<td class="n">{error}</td><td class="n">{engine.build_s:.1f}</td></tr>'
    )
