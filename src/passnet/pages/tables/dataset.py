"""A dataset as tables, as a page of Markdown with a figure, and one of its rows in full."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from passnet.core.records.serialise import decode
from passnet.data.dataset.build_records import MinedCounts, SizedCounts, SizedShare
from passnet.data.dataset.licences import licences_of
from passnet.data.dataset.stats import Stats
from passnet.data.dataset.store import SubgraphRow
from passnet.graph.spec import TensorSpec
from passnet.pages.figures.styles import new_figure
from passnet.pages.tables.cells import NOTHING, formatted, number, percent
from passnet.pages.tables.tables import Table, markdown

AS_CAPTURED = "as captured"
NUM_OPS_DRAWN = 20
FIGURE_TEXT = "rows by number of ops, by number of places, and the most frequent ops"


def stats_tables(stats: Stats) -> list[Table]:
    """Return the numbers of a dataset as tables."""
    total = stats.num_rows
    variants = {name or AS_CAPTURED: count for name, count in stats.variants.items()}
    op_rows = [
        (op.op, f"{op.calls:,}", percent(op.calls / stats.num_ops), f"{op.rows:,}")
        for op in stats.ops
    ]
    most_frequent = f"The {len(op_rows)} most frequent ops"
    return [
        _total_table(stats),
        *(_mining_tables(stats.mined) if stats.mined is not None else ()),
        *(_size_tables(stats.sized) if stats.sized is not None else ()),
        _share_table("Kinds", "kind", stats.kinds, total),
        _share_table("Domains", "domain", stats.domains, total),
        _share_table("Dtypes", "dtype", stats.dtypes, total),
        _share_table("Variants", "variant", variants, total),
        _share_table("Sizes", "ops", _by_range(stats.sizes), total),
        _share_table("Multiplicity", "places", _by_range(stats.multiplicity), total),
        Table(most_frequent, ("op", "calls", "share %", "rows"), [*op_rows]),
        Table(
            "Libraries",
            ("library", "rows", "nets"),
            [(row.library, f"{row.rows:,}", f"{row.nets:,}") for row in stats.libraries],
            "A row names the first few of its nets; nets that no row names are not counted.",
        ),
    ]


def _total_table(stats: Stats) -> Table:
    counts = {
        "rows (distinct subgraphs)": stats.num_rows,
        "without shapes and dtypes": stats.num_literals,
        "without literals too (structures)": stats.num_structures,
        "op sequences": stats.num_op_sequences,
        "ops": stats.num_ops,
        "distinct ops": stats.num_distinct_ops,
        "places": stats.num_places,
        "rows with more than one place": stats.num_repeated,
        "duplicates (places beyond the first of a row)": stats.num_places - stats.num_rows,
    }
    return Table(
        "Dataset",
        ("", "number"),
        [*_count_rows(counts), ("places a row", f"{stats.num_places / stats.num_rows:.2f}")],
        "A place is where a subgraph was found in a captured graph; a row has all the places "
        "of one subgraph.",
    )


def _mining_tables(mined: MinedCounts) -> list[Table]:
    counts = {
        "captured graphs": mined.num_graphs,
        "their ops": mined.num_ops,
        "graphs of which nothing could be mined": mined.num_failed,
    }
    graphs = _count_rows(counts)
    for dtype in sorted({*mined.varied, *mined.unvaried}):
        count = mined.varied.get(dtype, 0)
        total = count + mined.unvaried.get(dtype, 0)
        text = f"{count:,} of {total:,} ({100 * count / total:.1f} %)"
        graphs.append((f"made in {dtype}", text))
    kinds: list[tuple[str, ...]] = []
    for kind in sorted({*mined.found, *mined.refused}):
        count, refused = mined.found.get(kind, 0), mined.refused.get(kind, 0)
        kinds.append((kind, f"{count:,}", f"{refused:,}", percent(refused / (count + refused))))
    return [
        Table("Graphs", ("", "number"), graphs),
        Table("Ranges", ("kind", "cut out", "refused", "refused %"), kinds),
        Table("Why ranges were refused", ("reason", "ranges"), _count_rows(mined.reasons)),
    ]


def _size_tables(sized: SizedCounts) -> list[Table]:
    """Return the tables of nets at other sizes, with the reasons for missing graphs."""
    note = (
        f"{sized.num_nets} nets were captured again; a graph counts once a size. Rows are counted "
        "for each graph, and may be the same for two."
    )
    heads = ("graphs and sizes", "made", "made %", "rows", "s a graph", "s a row")
    tables = []
    for head, groups in (("library", sized.libraries), ("axes", sized.axes)):
        shares = [*groups.items(), ("all", sized.whole)]
        rows = [(name, *_size_cells(share)) for name, share in shares]
        tables.append(Table(f"Other sizes by {head}", (head, *heads), [*rows], note))
    return [
        *tables,
        Table("Why graphs were not made", ("cause", "graphs and sizes"), _count_rows(sized.causes)),
        Table("Reasons behind it", ("reason", "graphs and sizes"), _count_rows(sized.reasons)),
    ]


def _size_cells(share: SizedShare) -> tuple[str, ...]:
    tried, rows = share.num_tried, share.num_rows
    made_ratio = share.num_made / tried if tried else None
    graph_s, row_s = share.wall_s / tried if tried else None, share.wall_s / rows if rows else None
    counts = (f"{tried:,}", f"{share.num_made:,}", percent(made_ratio), f"{rows:,}")
    return (*counts, number(graph_s, 1), number(row_s, 2))


def _count_rows(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    return [(name, f"{count:,}") for name, count in counts.items()]


def _share_table(title: str, head: str, counts: Mapping[str, int], total: int) -> Table:
    rows = [(name, f"{count:,}", percent(count / total)) for name, count in counts.items()]
    return Table(title, (head, "rows", "share %"), [*rows])


def _by_range(counts: Sequence[tuple[int, int, int]]) -> dict[str, int]:
    """Return counts by their range of numbers, in words."""
    return {str(low) if low == high else f"{low} to {high}": count for low, high, count in counts}


def stats_page(stats: Stats, figure: str) -> str:
    """Return the numbers of a dataset as Markdown; `figure` is its path from there."""
    tables = markdown(stats_tables(stats))
    return f"# What the dataset holds\n\n![{FIGURE_TEXT}]({figure})\n\n{tables}"


def draw_stats(stats: Stats, path: Path) -> None:
    """Draw sizes, multiplicity and the most frequent ops as bars."""
    with new_figure(path, (12, 4), ncols=3) as (_, (sizes, places, ops)):
        for axes, counts, text in (
            (sizes, _by_range(stats.sizes), "ops of a subgraph"),
            (places, _by_range(stats.multiplicity), "places of a subgraph"),
        ):
            axes.bar(list(counts), list(counts.values()))
            axes.set(xlabel=text, ylabel="rows", yscale="log")
            axes.set_ylim(bottom=0.7)
            axes.tick_params(axis="x", rotation=45)
        frequent = stats.ops[:NUM_OPS_DRAWN][::-1]
        names = [op.op.removeprefix("torch.nn.functional.") for op in frequent]
        ops.barh(names, [op.calls for op in frequent])
        ops.set_xlabel("calls")
        ops.tick_params(axis="y", labelsize=7)


def row_tables(row: SubgraphRow) -> list[Table]:
    """Return the facts of a row, besides its text: fingerprints, arguments, places and nets."""
    facts = [
        ("fingerprint, full", row.full),
        ("with literals", row.literals),
        ("structure", row.structure),
        ("kinds", ", ".join(row.kinds) or "none"),
        ("ops", str(row.num_ops)),
        ("dtype", row.dtype),
        ("domain", row.domain),
        ("variant", row.variant or AS_CAPTURED),
        ("original", row.original or NOTHING),
    ]
    tensors = decode(row.tensors, tuple[TensorSpec, ...], row.full)
    argument_heads = ("name", "dtype", "shape", "mean", "std", "values", "for")
    places = [(place.graph, str(place.start), str(place.stop)) for place in row.places]
    places_note = f"{len(places)} of {row.num_places} places in {row.num_graphs} graphs"
    return [
        Table("Subgraph", ("", row.full[:16]), [*facts]),
        Table("Arguments", argument_heads, [_argument_row(spec) for spec in tensors]),
        Table("Places", ("graph", "ops from", "to before"), [*places], places_note),
        Table("Nets", ("net", "licence"), [(net, *licences_of((net,))) for net in row.nets]),
    ]


def _argument_row(spec: TensorSpec) -> tuple[str, ...]:
    values = NOTHING
    if spec.data is not None:
        values = ", ".join(f"{value:g}" for value in spec.data[:4])
        values += ", …" if len(spec.data) > 4 else ""
    elif spec.min_val is not None or spec.max_val is not None:
        values = f"{spec.min_val} to {spec.max_val}"
    moments = (formatted(moment, ".3g") for moment in (spec.mean, spec.std))
    shape = str(list(spec.shape))
    return spec.name, spec.dtype, shape, *moments, values, spec.original_name or NOTHING
