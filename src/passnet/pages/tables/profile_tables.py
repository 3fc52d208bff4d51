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
from passnet.pages.tables.cells import number, ops_in_words, percent
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
    rows: list[tuple[str, Share, float | None]] = [
        ("slower from end to end than eager torch", results.slower, PUBLISHED["slower"]),
        (f"the same by more than {100 * MARGIN:.0f} %, surely", results.surely_slower, None),
        ("slower, each as often as the dataset has it", results.slower_weighted, None),
        ("of the slower: by dispatch, as kernels are not slower", results.by_dispatch,
         PUBLISHED["by_dispatch"]),
        ("of the slower: kernels take less than all of eager", results.by_dispatch_at_least, None),
        (f"kernels less than {LITTLE_GAIN:g} times as fast", results.little_gain,
         PUBLISHED["little_gain"]),
        ("slower, and so are the kernels", results.strictly_slower, PUBLISHED["strictly_slower"]),
        ("slower even without Dynamo, called directly", results.slower_direct, None),
        ("of the slower: not slower without Dynamo", results.by_dynamo, None),
    ]  # fmt: skip
    return Table(
        "How often torch.compile loses",
        ("", "share %", "95 % interval", "of", "published %"),
        [
            (text, percent(share.value), _interval(share), str(share.num_of),
             percent(published))
            for text, share, published in rows
            if share.num_of
        ],
        f"{results.num_measured} of {results.num_items} items measured; geometric mean of "
        f"the speedup {results.geomean_speedup:.3f}, called directly "
        f"{number(results.geomean_direct)}; rank correlation of the speedup with the number of ops "
        f"{_signed(results.size_correlation)} (published: 0.013). The published shares are "
        "of 9,526 subgraphs on a GPU.",
    )  # fmt: skip


def parts_table(results: ProfileStudy) -> Table:
    """Return the parts of the time of compiled calls."""
    table = Table(
        "Where the time of a compiled call goes",
        ("part", "share of the call %", "of slower ones, µs"),
        note="Means of shares, and medians of microseconds. The parts of each item add up to its "
        f"call: what they leave is {_signed_per_cent(results.residue_low)} to "
        f"{_signed_per_cent(results.residue_high)} for nine tenths of items, and at most "
        f"{100 * RESIDUE_SHARE:.0f} % for each. guards: Dynamo; runtime: AOTAutograd and Inductor "
        "around the program; wrapper: the generated Python; copies: moves that no op asks for.",
    )
    for name in PART_NAMES:
        share, us = results.parts[name], results.difference_us.get(name)
        table.rows.append((name, percent(share), _us(us)))
    for name in ("eager dispatch", "eager kernels", "difference"):
        if name in results.difference_us:
            words = "compiled minus eager" if name == "difference" else name
            table.rows.append((words, "", _us(results.difference_us[name])))
    return table


def group_shares_table(by: str, groups: Sequence[GroupShare]) -> Table:
    """Return the results of every group."""
    heads = (by, "items", "slower %", "surely %", "by dispatch %", "G-Mean",
             *(f"{name} %" for name in PART_NAMES))  # fmt: skip
    return Table(
        f"By {by}",
        heads,
        [
            (group.name, str(group.num_items), percent(group.slower),
             percent(group.surely_slower), percent(group.by_dispatch),
             f"{group.geomean_speedup:.3f}",
             *(percent(group.parts[name]) for name in PART_NAMES))
            for group in groups
        ],
    )  # fmt: skip


def sequences_table(sequences: Sequence[SlowSequence]) -> Table:
    """Return the op sequences that lose most."""
    return Table(
        "The op sequences that lose most",
        ("ops", "items", "lost µs", "G-Mean"),
        [
            (ops_in_words(each.ops), str(each.num_items), _us(1e3 * each.lost_ms),
             f"{each.geomean_speedup:.3f}")
            for each in sequences[:MAX_SEQUENCES]
        ],
        "lost: compiled minus eager, one call of each item together.",
    )  # fmt: skip


def left_out_table(results: ProfileStudy) -> Table:
    """Return the numbers of items that were not measured, by cause."""
    return Table(
        "Left out",
        ("cause", "items", "% of all"),
        [
            (cause, str(count), percent(count / results.num_items))
            for cause, count in results.left_out.items()
        ],
    )


def items_table(records: Sequence[ProfileRecord]) -> Table:
    """Return a table with a row for each item, at most `MAX_ITEMS`."""
    table = Table(
        "Items, in microseconds",
        ("item", "ops", "eager", "compiled", "direct", "speedup", *PART_NAMES, "residue %"),
    )
    for record in records[:MAX_ITEMS]:
        if record.parts is None or record.status == "failed":
            table.rows.append((record.name, str(record.num_ops or ""), record.cause))
            table.rows[-1] += ("",) * (len(table.heads) - len(table.rows[-1]))
            continue
        low, high = record.speedup_low or 0.0, record.speedup_high or 0.0
        table.rows.append((
            record.name + ("" if record.status == "ok" else f" ({record.cause})"),
            str(record.num_ops or ""),
            _ms_as_us(record.eager_ms), _ms_as_us(record.compiled_ms), _ms_as_us(record.direct_ms),
            f"{record.speedup:.3f} ({low:.3f} – {high:.3f})",
            *(_ms_as_us(getattr(record.parts, name)) for name in PART_NAMES),
            percent(record.residue_share),
        ))  # fmt: skip
    return table


def _signed_per_cent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _interval(share: Share) -> str:
    if share.interval is None:
        return "–"
    return f"{100 * share.interval.low:.1f} – {100 * share.interval.high:.1f}"


def _us(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _ms_as_us(value: float | None) -> str:
    return _us(None if value is None else 1e3 * value)
