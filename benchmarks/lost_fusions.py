"""Attention that Inductor does not fuse, counted over all captured graphs with the reasons.

Run it with `python -m benchmarks.lost_fusions [--limit N] [--out FILE]`, and again to go on. FILE
gets a line a graph (default runs/lost_fusions.jsonl); `--table` only prints what there is.

Each attention is cut out and given to Inductor's pattern matcher on fake tensors, without code
generation; equal forms are tried once. For one that is not fused, the script writes an attention of
the same form, and changes one property after another until Inductor fuses it. The fewest such
changes are the reason. If the attention of the same form is fused at once, the reason is "other".
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from benchmarks.attention_forms import Form, form_of
from benchmarks.attention_patterns import num_fused, num_rewritten, reason
from benchmarks.cutting import CAPTURES, graph_of, read_rows
from benchmarks.written_attention import (
    CALLS,
    HEADS,
    PRODUCTS,
    SOFTMAX,
    Attention,
    Net,
    attentions,
    outline,
    returns_weights,
    views_after,
    window,
)
from passnet.core.records.serialise import decode
from passnet.data.capture.store import GraphRow
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, retarget
from passnet.graph.text.syntax import gc_paused
from passnet.graph.values.effects import last_name
from passnet.graph.values.fake import fake_input, restored_state
from passnet.pages.tables.tables import Table, print_table

RECORDS = Path("runs/lost_fusions.jsonl")


@dataclass(frozen=True)
class Outcome:
    """What Inductor does with an attention, and why: properties of its form.

    `outline` and `window` are digests of how it is written, without sizes and with them. `error` is
    that of Inductor, or of the run on fake tensors. `rewritten`: passnet's own rewrite can fuse it.
    """

    outline: str
    form: Form | None = None
    window: str = ""
    fused: bool = False
    rewritten: bool = False
    reason: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Found:
    """The attentions of one graph; `calls` are ops that are attention already."""

    calls: int
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class Counted:
    """The record of one captured graph."""

    full: str
    structure: str
    kind: str
    entry: str
    found: Found


@dataclass
class Tried:
    """What Inductor has seen: windows and outlines by digest, graphs by kind and structure."""

    windows: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    outlines: dict[str, Outcome] = field(default_factory=dict)
    graphs: dict[tuple[str, str], Found] = field(default_factory=dict)


class _Missing:
    """The value of a node that cannot run on fake tensors."""


def run_on_meta(graph: Graph, net: Net, stop: int) -> dict[Any, Any]:
    """Run the first `stop` nodes of a graph on the meta device; a node that fails has no value.

    Fake tensors would do, too; meta tensors are several times as fast. Autocast knows no meta
    device, so what it casts is not cast here.
    """
    annotations = {param.name: param.annotation for param in graph.program.params}
    values: dict[Any, Any] = {}
    with restored_state(), torch.device("meta"), torch.no_grad():
        arguments = iter([fake_input(spec, annotations[spec.name]) for spec in graph.tensors])
        for node in net.nodes[:stop]:
            is_argument = node.op == "placeholder"
            values[node] = next(arguments) if is_argument else _value(node, values)
    return values


def _value(node: Any, values: dict[Any, Any]) -> Any:
    if any(values[each] is _Missing for each in node.all_input_nodes):
        return _Missing
    args = torch.fx.map_arg(node.args, lambda each: values[each])
    kwargs: Any = torch.fx.map_arg(node.kwargs, lambda each: values[each])
    try:
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        return node.target(*args, **kwargs)
    except Exception:  # noqa: BLE001, whatever torch raises
        return _Missing


def count(row: GraphRow, tried: Tried) -> Counted:
    """Count a captured graph, which is not tried again if one of its structure was."""
    key, entry = (row.kind, row.structure), row.sources[0].entry
    if key not in tried.graphs:
        names = [last_name(target) for target in row.op_sequence]
        num_products = sum(name in PRODUCTS for name in names)
        is_written = bool(SOFTMAX.intersection(names)) and num_products > 1
        found = Found(sum(name in CALLS for name in names))
        if row.kind != "backward" and (is_written or HEADS in names):
            found = attentions_of(graph_of(row), row.kind == "training", tried)
        tried.graphs[key] = found
    return Counted(row.full, row.structure, row.kind, entry, tried.graphs[key])


def attentions_of(graph: Graph, training: bool, tried: Tried) -> Found:
    """Find the attentions of a graph, and let Inductor try each way they are written in."""
    graph = retarget(graph, "meta")
    net = Net(graph, build(graph.program))
    num_calls = sum(
        name in CALLS or (name == HEADS and not returns_weights(node))
        for node, name in net.names.items()
    )
    found = [(each, _digest(f"{training} {outline(net, each)}")) for each in attentions(net)]
    new = {key: each for each, key in reversed(found) if key not in tried.outlines}
    values = {}
    if new:
        stop = max(_last(net, each) + 1 for each in new.values())
        values = run_on_meta(graph, net, stop)
    for key, attention in new.items():
        tried.outlines[key] = _outcome(net, attention, values, training, tried, key)
    return Found(num_calls, tuple(tried.outlines[key] for _, key in found))


def _last(net: Net, attention: Attention) -> int:
    return net.place[(views_after(net, attention) or [attention.output])[-1]]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _outcome(
    net: Net, attention: Attention, values: dict[Any, Any], training: bool, tried: Tried, key: str
) -> Outcome:
    """Let Inductor try an attention, unless it has seen an equal window."""
    form, digest = None, ""
    try:
        form = form_of(net, attention, values)
        module, arguments, text = window(net, attention, values)
        digest = _digest(f"{training} {text}")
        if digest not in tried.windows:
            fused = num_fused(module, arguments, training) > 0
            rewritten = not training and num_rewritten(module, arguments) > 0
            tried.windows[digest] = fused, rewritten
    except Exception as error:  # noqa: BLE001, whatever torch raises
        logging.debug(traceback.format_exc())
        return Outcome(key, form, digest, error=f"{type(error).__name__}: {error}"[:400])
    fused, rewritten = tried.windows[digest]
    why = () if fused else reason(form, training)
    return Outcome(key, form, digest, fused, rewritten, why)


def records(file: Path) -> list[Counted]:
    """Return the records of a file, which may not be there yet."""
    if not file.exists():
        return []
    return [decode(line, Counted) for line in file.read_bytes().splitlines()]


def count_all(rows: Iterable[GraphRow], file: Path) -> None:
    """Count graphs that have no record yet."""
    done = records(file)
    seen = {record.full for record in done}
    tried = Tried(graphs={(record.kind, record.structure): record.found for record in done})
    for record in done:
        for each in record.found.outcomes:
            tried.outlines[each.outline] = each
            if not each.error:
                tried.windows[each.window] = each.fused, each.rewritten
    file.parent.mkdir(parents=True, exist_ok=True)
    waiting = [row for row in rows if row.full not in seen]
    waiting.sort(key=lambda row: row.structure)
    start = time.monotonic()
    with file.open("a", encoding="utf-8") as stream:
        for number, row in enumerate(waiting, start=1):
            with gc_paused():
                counted = count(row, tried)
            stream.write(json.dumps(asdict(counted)) + "\n")
            if number % 100 == 0 or number == len(waiting):
                stream.flush()
                took = time.monotonic() - start
                done_text = f"{number} of {len(waiting)} graphs, {took:.0f} s"
                print(f"{done_text}, {len(tried.outlines)} outlines", flush=True)


def main() -> None:
    """Count, and print the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", maxsplit=1)[0])
    parser.add_argument("--limit", type=int, help="most graphs")
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--table", action="store_true", help="count nothing")
    options = parser.parse_args()
    if not options.table:
        rows = [*read_rows(CAPTURES), *read_rows(CAPTURES / "training")]
        count_all(rows[: options.limit], options.out)
    for table in tables(records(options.out)):
        print_table(Console(width=140), table)


WORDS: dict[str, str] = {
    "scale=multiplied": "scale multiplied, not divided",
    "scale=on query or key": "scale on query or key",
    "scale=a tensor": "scale in a tensor",
    "scale=in baddbmm": "scale in `baddbmm`",
    "scale=none": "no scale",
    "layout=einsum": "`einsum`",
    "layout=views between": "views between the products",
    "layout=key not swapped last": "key not swapped last",
    "layout=more axes": "more than four axes",
    "layout=weights right of the values": "values times weights",
    f"layout={HEADS}": "in torch's multi-head attention",
    "cast=True": "softmax in another dtype",
    "dropout=True": "dropout",
    "softmax_axis=another": "softmax along another axis",
    "weights_used=True": "weights used elsewhere",
}
"""Property of a form, with its value -> the reason in words."""

FUSED, WRONG, FAILED, UNTRIED = (
    "fused",
    "fused along a wrong axis",
    "error in Inductor",
    "not tried",
)


def status(outcome: Outcome) -> str:
    """Return what became of an attention."""
    if outcome.error or outcome.form is None:
        return FAILED if "Attempting to broadcast" in outcome.error else UNTRIED
    if not outcome.fused:
        return "not fused"
    return FUSED if outcome.form.softmax_axis == "last" else WRONG


def reasons(outcome: Outcome) -> list[str]:
    """Return the reasons why an attention is not fused, in words."""
    form = outcome.form
    assert form is not None, "an attention without a form was not tried"
    found = []
    for name in outcome.reason:
        text = f"{name}={getattr(form, name)}"
        if name == "layout" and form.layout[0].isdigit():
            found.append("heads in the batch axis")
        elif name == "mask":
            found.append("mask filled in" if "filled" in form.mask else "mask or bias added")
        elif name == "others":
            found.append("other ops between")
        else:
            found.append(WORDS.get(text, text))
    return found or ["other"]


def tables(found: Sequence[Counted]) -> Iterator[Table]:
    """Yield the totals, and the reasons."""
    heads = ("attentions", "graphs", "structures")
    forward = [record for record in found if record.kind != "backward"]
    pairs = [(record, outcome) for record in forward for outcome in record.found.outcomes]
    by_status: dict[str, list[Counted]] = defaultdict(list)
    by_reason: dict[str, list[Counted]] = defaultdict(list)
    alone: Counter[str] = Counter()
    rewritten: Counter[str] = Counter()
    for record, outcome in pairs:
        by_status[status(outcome)].append(record)
        if status(outcome) == "not fused":
            each = reasons(outcome)
            alone.update(each if len(each) == 1 else ())
            rewritten.update(each if outcome.rewritten else ())
            by_status["not fused, but by passnet"] += [record] * outcome.rewritten
            for reason_in_words in each:
                by_reason[reason_in_words].append(record)
    called = [record for record in forward for _ in range(record.found.calls)]
    totals = Table(
        "Attention in captured graphs",
        ("", *heads),
        [
            ("calls of attention", *_numbers(called)),
            ("written out by hand", *_numbers([record for record, _ in pairs])),
            *((name, *_numbers(records)) for name, records in sorted(by_status.items())),
        ],
        f"{len(forward)} graphs of forward passes, {len({each.structure for each in forward})} "
        "structures.",
    )
    yield totals
    num_lost = len(by_status["not fused"])
    table = Table(
        "Not fused, by what has to change",
        ("reason", *heads, "%", "alone", "alone %", "by passnet"),
        note="alone: nothing else has to change. An attention may have several reasons. "
        "by passnet: attentions of inference that its rewrite can fuse.",
    )
    for name, some in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        shares = (f"{100 * number / num_lost:.1f}" for number in (len(some), alone[name]))
        share, share_alone = shares
        table.rows.append(
            (name, *_numbers(some), share, str(alone[name]), share_alone, str(rewritten[name]))
        )
    yield table


def _numbers(records: Sequence[Counted]) -> tuple[str, str, str]:
    """Return the numbers of attentions, of which each has a record here, graphs and structures."""
    graphs = {record.full for record in records}
    return (str(len(records)), str(len(graphs)), str(len({each.structure for each in records})))


if __name__ == "__main__":
    main()
