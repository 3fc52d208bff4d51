"""A dataset as tables, as a page of Markdown with a figure, and one of its rows in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from passnet.dataset.build_records import MinedCounts
from passnet.dataset.stats import Stats
from passnet.dataset.store import SubgraphRow
from passnet.graph.spec import TensorSpec
from passnet.records.serialise import decode
from passnet.report.tables import Table, markdown

AS_CAPTURED = "as captured"
FIGURE_TEXT = "rows by number of ops, by number of places, and the most frequent ops"


def stats_tables(found: Stats) -> list[Table]:
    """The numbers of a dataset as tables."""
    return [
        _whole(found),
        *(_mined(found.mined) if found.mined is not None else ()),
        _shares("Kinds", "kind", found.kinds, found.num_rows),
        _shares("Domains", "domain", found.domains, found.num_rows),
        _shares("Dtypes", "dtype", found.dtypes, found.num_rows),
        _shares(
            "Variants",
            "variant",
            {name or AS_CAPTURED: count for name, count in found.variants.items()},
            found.num_rows,
        ),
        _ranges("Sizes", "ops", found.sizes, found.num_rows),
        _ranges("Multiplicity", "places", found.multiplicity, found.num_rows),
        _ops(found),
        _libraries(found),
    ]


def _whole(found: Stats) -> Table:
    table = Table(
        "Dataset",
        ("", "number"),
        note="A place is where a subgraph was found in a captured graph; a row has all the places "
        "of one subgraph.",
    )
    for name, number in (
        ("rows (distinct subgraphs)", found.num_rows),
        ("without shapes and dtypes", found.num_literals),
        ("without literals too (structures)", found.num_structures),
        ("op sequences", found.num_op_sequences),
        ("ops", found.num_ops),
        ("distinct ops", found.num_distinct_ops),
        ("places", found.num_places),
        ("rows with more than one place", found.num_repeated),
        ("duplicates (places beyond the first of a row)", found.num_places - found.num_rows),
    ):
        table.rows.append((name, f"{number:,}"))
    table.rows.append(("places a row", f"{found.num_places / found.num_rows:.2f}"))
    return table


def _mined(found: MinedCounts) -> list[Table]:
    graphs = Table("Graphs", ("", "number"))
    for name, number in (
        ("captured graphs", found.num_graphs),
        ("their ops", found.num_ops),
        ("graphs of which nothing could be mined", found.num_failed),
    ):
        graphs.rows.append((name, f"{number:,}"))
    for dtype in sorted({*found.varied, *found.unvaried}):
        made, not_made = found.varied.get(dtype, 0), found.unvaried.get(dtype, 0)
        share = 100 * made / (made + not_made)
        graphs.rows.append((f"made in {dtype}", f"{made:,} of {made + not_made:,} ({share:.1f} %)"))
    kinds = Table("Ranges", ("kind", "cut out", "refused", "refused %"))
    for kind in sorted({*found.found, *found.refused}):
        count, refused = found.found.get(kind, 0), found.refused.get(kind, 0)
        share = 100 * refused / (count + refused)
        kinds.rows.append((kind, f"{count:,}", f"{refused:,}", f"{share:.1f}"))
    refusals: list[tuple[str, ...]] = [
        (reason, f"{count:,}") for reason, count in found.reasons.items()
    ]
    reasons = Table("Why ranges were refused", ("reason", "ranges"), refusals)
    return [graphs, kinds, reasons]


def _shares(title: str, head: str, counts: Mapping[str, int], total: int) -> Table:
    table = Table(title, (head, "rows", "share %"))
    for name, count in counts.items():
        table.rows.append((name, f"{count:,}", f"{100 * count / total:.1f}"))
    return table


def _ranges(title: str, head: str, counts: Sequence[tuple[int, int, int]], total: int) -> Table:
    return _shares(title, head, {_range(low, high): count for low, high, count in counts}, total)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _ops(found: Stats) -> Table:
    table = Table(f"The {len(found.ops)} most frequent ops", ("op", "calls", "share %", "rows"))
    for item in found.ops:
        share = f"{100 * item.calls / found.num_ops:.1f}"
        table.rows.append((item.op, f"{item.calls:,}", share, f"{item.rows:,}"))
    return table


def _libraries(found: Stats) -> Table:
    table = Table(
        "Libraries",
        ("library", "rows", "nets"),
        note="A row names the first few of its nets; nets that no row names are not counted.",
    )
    for item in found.libraries:
        table.rows.append((item.library, f"{item.rows:,}", f"{item.nets:,}"))
    return table


def stats_page(found: Stats, figure: str) -> str:
    """The numbers of a dataset as a page of Markdown.

    Args:
        found: the numbers.
        figure: the path of the figure, as seen from the page.
    """
    return f"# What the dataset holds\n\n![{FIGURE_TEXT}]({figure})\n\n" + markdown(
        stats_tables(found)
    )


def draw_stats(found: Stats, path: Path, num_ops: int = 20) -> None:
    """Sizes, multiplicity and the most frequent ops as bars, in an SVG or PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (sizes, places, ops) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    for axes, counts, text in (
        (sizes, found.sizes, "ops of a subgraph"),
        (places, found.multiplicity, "places of a subgraph"),
    ):
        axes.bar([_range(low, high) for low, high, _ in counts], [item[2] for item in counts])
        axes.set_xlabel(text)
        axes.set_ylabel("rows")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7)
        axes.tick_params(axis="x", rotation=45)
    first = found.ops[:num_ops][::-1]
    names = [item.op.removeprefix("torch.nn.functional.") for item in first]
    ops.barh(names, [item.calls for item in first])
    ops.set_xlabel("calls")
    ops.tick_params(axis="y", labelsize=7)
    # Without a date, and with names of parts that do not depend on chance: equal datasets give
    # equal files.
    with matplotlib.rc_context({"svg.hashsalt": "passnet"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def row_tables(row: SubgraphRow) -> list[Table]:
    """What a row says of itself beside its text: what it is, its arguments, places and nets."""
    facts: list[tuple[str, ...]] = [
        ("fingerprint, full", row.full),
        ("with literals", row.literals),
        ("structure", row.structure),
        ("kinds", ", ".join(row.kinds) or "none"),
        ("ops", str(row.num_ops)),
        ("dtype", row.dtype),
        ("domain", row.domain),
        ("variant", row.variant or AS_CAPTURED),
        ("original", row.original or "–"),
    ]
    about = Table("Subgraph", ("", row.full[:16]), facts)
    arguments = Table("Arguments", ("name", "dtype", "shape", "mean", "std", "values", "for"))
    for item in decode(row.tensors, tuple[TensorSpec, ...], row.full):
        arguments.rows.append(_argument(item))
    places = Table(
        "Places",
        ("graph", "ops from", "to before"),
        [(item.graph, str(item.start), str(item.stop)) for item in row.places],
        f"{len(row.places)} of {row.num_places} places in {row.num_graphs} graphs",
    )
    return [about, arguments, places, Table("Nets", ("net",), [(name,) for name in row.nets])]


def _argument(item: TensorSpec) -> tuple[str, ...]:
    values = "–"
    if item.data is not None:
        values = ", ".join(f"{value:g}" for value in item.data[:4])
        values += ", …" if len(item.data) > 4 else ""
    elif item.min_val is not None or item.max_val is not None:
        values = f"{item.min_val} to {item.max_val}"
    return (
        item.name,
        item.dtype,
        str(list(item.shape)),
        _number(item.mean),
        _number(item.std),
        values,
        item.original_name or "–",
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
