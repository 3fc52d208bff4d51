"""Tables of a study of profiles, and of single items."""

from collections.abc import Sequence

from passnet.bench.profiling.record import MARGIN, PART_NAMES, RESIDUE_SHARE, ProfileRecord
from passnet.bench.profiling.study import (
    LITTLE_GAIN,
    PUBLISHED,
    GroupShare,
    ProfileStudy,
    Share,
    SlowSequence,
)
from passnet.pages.tables.cells import (
    NOTHING,
    bounds,
    formatted,
    number,
    ops_in_words,
    percent,
)
from passnet.pages.tables.tables import Table

MAX_ITEMS = 40
MAX_SEQUENCES = 15


def study_tables(results: ProfileStudy) -> list[Table]:
    """Return all tables of a study."""
    tables = [shares_table(results), parts_table(results)]
    tables += [group_shares_table(by, groups) for by, groups in results.groups.items()]
    if results.sequences:
        tables.append(sequences_table(results.sequences))
    if results.left_out:
        tables.append(left_out_table(results))
    return tables


def shares_table(results: ProfileStudy) -> Table:
    """Return the shares of slower calls, with the published ones."""
    by_dispatch = "of the slower: by dispatch, as kernels are not slower"
    little_gain = f"kernels less than {LITTLE_GAIN:g} times as fast"
    shares: list[tuple[str, Share, float | None]] = [
        ("slower from end to end than eager torch", results.slower, PUBLISHED["slower"]),
        (f"the same by more than {100 * MARGIN:.0f} %, surely", results.surely_slower, None),
        ("slower, each as often as the dataset has it", results.slower_weighted, None),
        (by_dispatch, results.by_dispatch, PUBLISHED["by_dispatch"]),
        ("of the slower: kernels take less than all of eager", results.by_dispatch_at_least, None),
        (little_gain, results.little_gain, PUBLISHED["little_gain"]),
        ("slower, and so are the kernels", results.strictly_slower, PUBLISHED["strictly_slower"]),
        ("slower even without Dynamo, called directly", results.slower_direct, None),
        ("of the slower: not slower without Dynamo", results.by_dynamo, None),
    ]
    rows = [
        (
            text,
            percent(share.value),
            _percent_interval(share),
            str(share.num_of),
            percent(published),
        )
        for text, share, published in shares
        if share.num_of
    ]
    return Table(
        "How often torch.compile loses",
        ("", "share %", "95 % interval", "of", "published %"),
        [*rows],
        f"{results.num_measured} of {results.num_items} items measured; geometric mean of the "
        f"speedup {results.geomean_speedup:.3f}, called directly "
        f"{number(results.geomean_direct)}; rank correlation of the speedup with the number of "
        f"ops {formatted(results.size_correlation, '+.3f')} (published: 0.013). The published "
        "shares are of 9,526 subgraphs on a GPU.",
    )


def parts_table(results: ProfileStudy) -> Table:
    """Return the parts of the time of compiled calls."""
    table = Table(
        "Where the time of a compiled call goes",
        ("part", "share of the call %", "of slower ones, µs"),
        note="Means of shares, and medians of microseconds. The parts of each item add up to its "
        f"call: what they leave is {100 * results.residue_low:+.1f} % to "
        f"{100 * results.residue_high:+.1f} % for nine tenths of items, and at most "
        f"{100 * RESIDUE_SHARE:.0f} % for each. guards: Dynamo; runtime: AOTAutograd and Inductor "
        "around the program; wrapper: the generated Python; copies: moves that no op asks for.",
    )
    for name in PART_NAMES:
        share, us = results.parts[name], results.difference_us.get(name)
        table.rows.append((name, percent(share), number(us, 1)))
    for name in ("eager dispatch", "eager kernels", "difference"):
        if name in results.difference_us:
            words = "compiled minus eager" if name == "difference" else name
            table.rows.append((words, "", number(results.difference_us[name], 1)))
    return table


def group_shares_table(by: str, groups: Sequence[GroupShare]) -> Table:
    """Return the results of every group."""
    heads = ("items", "slower %", "surely %", "by dispatch %", "G-Mean")
    rows = []
    for group in groups:
        shares = (group.slower, group.surely_slower, group.by_dispatch)
        parts = (group.parts[name] for name in PART_NAMES)
        speedup = number(group.geomean_speedup)
        num_items = str(group.num_items)
        rows.append((group.name, num_items, *map(percent, shares), speedup, *map(percent, parts)))
    return Table(f"By {by}", (by, *heads, *(f"{name} %" for name in PART_NAMES)), [*rows])


def sequences_table(sequences: Sequence[SlowSequence]) -> Table:
    """Return the op sequences that lose most."""
    rows = []
    for slow in sequences[:MAX_SEQUENCES]:
        lost, speedup = _ms_as_us(slow.lost_ms), number(slow.geomean_speedup)
        rows.append((ops_in_words(slow.ops), str(slow.num_items), lost, speedup))
    heads = ("ops", "items", "lost µs", "G-Mean")
    note = "lost: compiled minus eager, one call of each item together."
    return Table("The op sequences that lose most", heads, [*rows], note)


def left_out_table(results: ProfileStudy) -> Table:
    """Return the numbers of items that were not measured, by cause."""
    rows = [
        (cause, str(count), percent(count / results.num_items))
        for cause, count in results.left_out.items()
    ]
    return Table("Left out", ("cause", "items", "% of all"), [*rows])


def items_table(records: Sequence[ProfileRecord]) -> Table:
    """Return a table with a row for each item, at most `MAX_ITEMS`."""
    table = Table(
        "Items, in microseconds",
        ("item", "ops", "eager", "compiled", "direct", "speedup", *PART_NAMES, "residue %"),
        least=("residue %", *reversed(PART_NAMES), "direct", "ops", "compiled", "eager"),
    )
    for record in records[:MAX_ITEMS]:
        if record.parts is None or record.status == "failed":
            empty = ("",) * (len(table.heads) - 3)
            table.rows.append((record.name, str(record.num_ops or ""), record.cause, *empty))
            continue
        name = record.name + ("" if record.status == "ok" else f" ({record.cause})")
        times = map(_ms_as_us, (record.eager_ms, record.compiled_ms, record.direct_ms))
        within = bounds(record.speedup_low or 0.0, record.speedup_high or 0.0)
        parts = (_ms_as_us(getattr(record.parts, part)) for part in PART_NAMES)
        cells = (*times, f"{record.speedup:.3f} ({within})", *parts, percent(record.residue_share))
        table.rows.append((name, str(record.num_ops or ""), *cells))
    return table


def _percent_interval(share: Share) -> str:
    if share.interval is None:
        return NOTHING
    return bounds(100 * share.interval.low, 100 * share.interval.high, 1)


def _ms_as_us(value: float | None) -> str:
    return number(None if value is None else 1e3 * value, 1)
