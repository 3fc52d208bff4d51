"""The page of an optimised net: one HTML file that opens from disk and needs nothing else."""

from collections.abc import Iterable
from html import escape

from passnet.optimizer.record import BlockRecord, EngineRecord, FormRecord, OptimizedRecord

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c2430; background: #fff; }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #e3e7ee }
td.n, th.n { text-align: right }
.bar { display: inline-block; height: .8rem; background: #7c93b5; vertical-align: middle }
.used .bar { background: #1f8f5f } .used td { font-weight: 600 }
.note { color: #5a6575 } code { background: #f2f4f8; padding: 0 .2rem }
@media (prefers-color-scheme: dark) {
  body { color: #dde3ec; background: #14181f } th, td { border-color: #2b323d }
  code { background: #232a35 } .note { color: #97a3b5 } }
"""

MAX_BLOCKS = 60


def optimized_page(record: OptimizedRecord) -> str:
    """The page of a record."""
    made = record.environment
    threads = "one thread" if record.num_threads == 1 else f"{record.num_threads} threads"
    folded = "Weights will not change." if record.freeze else "Weights may change."
    parts = [
        f"<h1>{escape(record.net)}, optimised</h1>",
        f"<p>Measured on {escape(made.cpu)}, {threads}, torch {escape(made.torch)}, passnet "
        f"{escape(record.passnet)}. {folded} All times of a form were taken in turns, in one "
        "process; each way was compared with eager torch on fresh and hostile inputs first. "
        "The figures are those of <code>optimized.json</code> beside this page.</p>",
    ]
    for form in record.forms:
        parts += _form(form)
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f"{escape(record.net)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _form(form: FormRecord) -> Iterable[str]:
    yield f"<h2>Inputs {escape(', '.join(form.inputs))}</h2>"
    yield (
        f"<p><b>{escape(form.chosen)}</b> is used: {form.ms:.4f} ms a call, "
        f"<b>{form.speedup:.2f}</b> times as fast as eager torch (95 % interval "
        f"{form.speedup_low:.2f} to {form.speedup_high:.2f}).</p>"
    )
    yield '<table><tr><th>way</th><th class="n">ms</th><th class="n">over eager</th><th></th></tr>'
    longest = max((each.best_ms or 0.0 for each in form.engines), default=0.0)
    for engine in sorted(form.engines, key=lambda each: each.best_ms or float("inf")):
        yield _engine_row(engine, form, longest)
    yield "</table>"
    yield from _ranges(form)
    yield from _blocks(form.blocks)


def _ranges(form: FormRecord) -> Iterable[str]:
    """The ranges that passes were looked for."""
    if not form.ranges:
        return
    yield "<h2>Ranges and their passes</h2>"
    yield (
        '<table><tr><th>ops</th><th class="n">places</th><th class="n">eager ms</th>'
        '<th class="n">pass ms</th><th>author</th><th class="n">saved ms</th><th></th></tr>'
    )
    for each in sorted(form.ranges, key=lambda each: -each.saved_ms * each.num_places):
        used = ' class="used"' if each.num_chosen else ""
        times = [
            "–" if ms is None else f"{ms:.4f}"
            for ms in (each.eager_ms, each.pass_ms, each.saved_ms)
        ]
        yield (
            f'<tr{used}><td>{escape(", ".join(each.ops))}</td><td class="n">{each.num_places}</td>'
            f'<td class="n">{times[0]}</td><td class="n">{times[1]}</td>'
            f'<td>{escape(each.author)}</td><td class="n">{times[2]}</td>'
            f"<td>{escape(each.status)}</td></tr>"
        )
    yield "</table>"


def _engine_row(engine: EngineRecord, form: FormRecord, longest: float) -> str:
    used = ' class="used"' if engine.engine == form.chosen else ""
    best = engine.best_ms
    if best is None:
        text = f'<td colspan="3" class="note">{escape(f"{engine.status}: {engine.reason}")}</td>'
        return f"<tr{used}><td>{escape(engine.engine)}</td>{text}</tr>"
    bar = f'<span class="bar" style="width:{100 * best / longest:.1f}%"></span>'
    return (
        f'<tr{used}><td>{escape(engine.engine)}</td><td class="n">{best:.4f}</td>'
        f'<td class="n">{form.eager_ms / best:.2f}</td><td style="width:40%">{bar}</td></tr>'
    )


def _blocks(blocks: tuple[BlockRecord, ...]) -> Iterable[str]:
    """The blocks of the net, coloured by their share of its time in eager torch."""
    total = sum(block.ms for block in blocks if "." not in block.name)
    if not blocks or not total:
        return
    yield "<h2>Where eager torch spends its time</h2>"
    yield (
        '<p class="note">Blocks within blocks are set in, and their time is part of that of the '
        "block around them. The redder, the larger the share of the whole.</p>"
    )
    yield '<table><tr><th>block</th><th></th><th class="n">ms</th><th class="n">share</th></tr>'
    for block in blocks[:MAX_BLOCKS]:
        share = block.ms / total
        depth = block.name.count(".")
        colour = f"rgba(214, 69, 51, {min(1.0, share) * 0.85:.2f})"
        yield (
            f'<tr style="background:{colour}"><td style="padding-left:{0.6 + 1.2 * depth:.1f}rem">'
            f"{escape(block.name)}</td><td>{escape(block.kind)}</td>"
            f'<td class="n">{block.ms:.4f}</td><td class="n">{100 * share:.0f} %</td></tr>'
        )
    yield "</table>"
    if len(blocks) > MAX_BLOCKS:
        yield f'<p class="note">and {len(blocks) - MAX_BLOCKS} more.</p>'
