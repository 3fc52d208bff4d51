"""Tables of an optimised net: the ranges that passes were looked for, and the ways to run it."""

from passnet.optimizer.record import EngineRecord, FormRecord, OptimizedRecord
from passnet.pages.optimizer.page_text import interval
from passnet.pages.tables.tables import Table

MAX_REASON = 90
MAX_OPS = 6


def optimized_tables(record: OptimizedRecord) -> list[Table]:
    """For each form of inputs a table of its ranges, if passes were looked for, and one of the ways
    to run the whole net.
    """
    return [
        table
        for form in record.forms
        for table in (*([_range_table(form)] if form.ranges else []), _form_table(record, form))
    ]


def _form_table(record: OptimizedRecord, form: FormRecord) -> Table:
    threads = "one thread" if record.num_threads == 1 else f"{record.num_threads} threads"
    gain = f"{form.speedup:.2f} ({form.speedup_low:.2f} – {form.speedup_high:.2f})"
    table = Table(
        f"{record.net} on {', '.join(form.inputs)}, {threads}",
        (
            "way",
            "ms",
            "as torch calls it, ms",
            "over eager (95 %)",
            "built in s",
            "error",
            "what it is",
        ),
        note=f"{form.chosen} is used: {gain} times as fast as eager torch. error: the largest "
        "relative error of an output, beside float64 where the net runs in it. over eager: of the "
        "returned net, with its 95 % interval.",
    )
    for engine in sorted(form.engines, key=lambda each: each.used_ms or float("inf")):
        table.rows.append((
            engine.engine + (" *" if engine.engine == form.chosen else ""),
            _ms(engine.ms),
            _ms(engine.plain_ms),
            interval(engine.speedup, engine.speedup_low, engine.speedup_high),
            f"{engine.build_s:.1f}",
            "–" if engine.error is None else f"{engine.error:.0e}",
            _outcome(engine),
        ))  # fmt: skip
    return table


def _range_table(form: FormRecord) -> Table:
    """The ranges of a net that passes were looked for, what saves most first."""
    table = Table(
        "Ranges of the net",
        ("range", "ops", "in places", "eager ms", "pass ms", "author", "saved ms", ""),
        note="saved ms: in one place, by the lower bound of the interval. Passes with a star are "
        "in the ways with passes; whether these are used, the whole net decides.",
    )
    for each in sorted(form.ranges, key=lambda each: -each.saved_ms * each.num_places):
        names = [op.rpartition(".")[2] for op in each.ops]
        shown = " ".join(names[:MAX_OPS]) + (" …" if len(names) > MAX_OPS else "")
        table.rows.append((
            shown + (" *" if each.num_chosen else ""),
            str(len(each.ops)),
            str(each.num_places),
            _ms(each.eager_ms),
            _ms(each.pass_ms),
            each.author,
            _ms(each.saved_ms),
            f"{each.status}: {_short(each.error)}" if each.error else each.status,
        ))  # fmt: skip
    return table


def _outcome(engine: EngineRecord) -> str:
    if engine.status == "ok":
        return engine.says
    return f"{engine.status}: {_short(engine.reason or '')}"


def _short(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
