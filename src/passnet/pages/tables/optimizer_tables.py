"""Tables of an optimised net: its backends, and the ranges for which passes were tried."""

from passnet.optimizer.record import BackendRecord, OptimizedRecord, SignatureRecord
from passnet.pages.figures.speed_figure import errors_in_words, fastest_by_error
from passnet.pages.tables.cells import formatted, in_ms, interval, ops_in_words, threads_in_words
from passnet.pages.tables.tables import Table

MAX_REASON = 90
MAX_OPS = 6

STEADINESS = {
    "repeated": " The machine was busy, so the last rounds were repeated.",
    "busy": " The machine was busy throughout: time again on a quiet one.",
}
"""What a table adds about how steadily it was timed."""


def optimized_tables(record: OptimizedRecord) -> list[Table]:
    """Return the tables of every input signature: ranges of ops and sizes, if any, and backends."""
    return [
        table
        for form in record.forms
        for table in (
            *([_range_table(form)] if form.ranges else []),
            *([_size_table(form)] if form.sizes else []),
            _form_table(record, form),
        )
    ]


def _size_table(form: SignatureRecord) -> Table:
    """Return the table of the sizes that were measured."""
    rows = [
        (
            *map(str, each.sizes),
            each.chosen,
            in_ms(each.ms[each.chosen]),
            in_ms(each.ms["eager"]),
            interval(each.speedup, each.speedup_low, each.speedup_high),
        )
        for each in form.sizes
    ]
    served = " and ".join(f"{r.name} from {r.low} to {r.high}" for r in form.size_ranges)
    return Table(
        "Sizes",
        (*(r.name for r in form.size_ranges), "fastest", "ms", "eager's ms", "over eager (95 %)"),
        [*rows],
        f"One entry serves {served}. A call runs the backend that is fastest at the nearest of "
        "these sizes.",
    )


def _form_table(record: OptimizedRecord, form: SignatureRecord) -> Table:
    gain = f"{form.speedup:.2f} ({form.speedup_low:.2f} – {form.speedup_high:.2f})"
    rows = [
        (
            engine.engine + (" *" if engine.engine == form.chosen else ""),
            in_ms(engine.ms),
            in_ms(engine.eager_ms),
            in_ms(engine.plain_ms),
            interval(engine.speedup, engine.speedup_low, engine.speedup_high),
            f"{engine.build_s:.1f}",
            formatted(engine.error, ".0e"),
            _outcome(engine),
        )
        for engine in sorted(form.engines, key=lambda engine: -(engine.speedup or 0.0))
    ]
    return Table(
        f"{record.net} on {', '.join(form.inputs)}, {threads_in_words(record.num_threads)}",
        (
            *("backend", "ms", "eager's ms", "torch's ms", "over eager (95 %)"),
            *("built in s", "error", "outcome"),
        ),
        [*rows],
        f"{form.chosen} is used: {gain} times as fast as eager PyTorch. eager's ms: in the same "
        "rounds. torch's ms: as torch calls the backend, without our checks. error: the largest "
        "relative error of an output, against float64 where the net runs in it. over eager: of the "
        f"returned net, with its interval.{' Times are means over sizes.' * bool(form.sizes)}"
        f"{_bought(form)}"
        f"{STEADINESS.get(form.steadiness or '', '')}",
        ("torch's ms", "built in s", "error", "eager's ms"),
    )


def _bought(form: SignatureRecord) -> str:
    """Return what the allowed error buys, as a sentence, where one is allowed."""
    if form.allowed_error is None:
        return ""
    allowed = formatted(form.allowed_error, ".0e")
    return f" Errors up to {allowed} are allowed: {errors_in_words(fastest_by_error(form))}."


def _range_table(form: SignatureRecord) -> Table:
    """Return the table of the ranges of a net, the largest savings first."""
    rows = [
        (
            ops_in_words(row.ops, MAX_OPS) + (" *" if row.num_chosen else ""),
            str(len(row.ops)),
            str(row.num_places),
            in_ms(row.eager_ms),
            in_ms(row.pass_ms),
            row.author,
            in_ms(row.saved_ms),
            f"{row.status}: {_short(row.error)}" if row.error else row.status,
        )
        for row in sorted(form.ranges, key=lambda row: -row.saved_ms * row.num_places)
    ]
    return Table(
        "Ranges of the net",
        ("range", "ops", "places", "eager ms", "pass ms", "author", "saved ms", "outcome"),
        [*rows],
        "saved ms: in one place, by the lower bound of the interval. Passes with a star are in the "
        "backends with passes; the whole net decides if one of these is used.",
        ("eager ms", "pass ms", "author", "ops"),
    )


def _outcome(engine: BackendRecord) -> str:
    if engine.status == "ok":
        return engine.says
    return f"{engine.status}: {_short(engine.reason or '')}"


def _short(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"
