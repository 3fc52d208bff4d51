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
import itertools
import json
import logging
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch._dynamo.utils import counters
from torch._guards import TracingContext, tracing
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule

from benchmarks.cutting import CAPTURES, graph_of, read_rows
from benchmarks.written_attention import (
    CALLS,
    HEADS,
    PRODUCTS,
    SOFTMAX,
    Attention,
    Form,
    Net,
    attentions,
    form_of,
    outline,
    returns_weights,
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
SETTINGS: dict[str, Any] = {"force_disable_caches": True, "compile_threads": 1}

CHANGES: dict[str, Any] = {
    "scale": "divided",
    "layout": "four axes",
    "cast": False,
    "dropout": False,
    "softmax_axis": "last",
    "others": (),
    "mask": "none",
    "weights_used": False,
}
"""Fields of a form -> the value that Inductor's patterns know; first those that change no value."""


def num_fused(module: GraphModule, inputs: Sequence[Any], training: bool = False) -> int:
    """Return how many attentions Inductor's joint-graph patterns replace; nothing is compiled.

    `inputs` may be on the meta device. In training the patterns see forward and backward together.
    """

    def keep(graph: GraphModule, _: Sequence[Any], **__: Any) -> Callable[..., Any]:
        return graph.forward

    with FakeTensorMode() as mode:
        fakes = [
            torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="cpu")
            for each in inputs
        ]
    before = counters["inductor"]["fuse_attention"]
    with tracing(TracingContext(mode)), config.patch(SETTINGS), torch.set_grad_enabled(training):
        if training:
            fakes = [each.requires_grad_(each.is_floating_point()) for each in fakes]
        compile_fx(module, fakes, inner_compile=keep)
    return counters["inductor"]["fuse_attention"] - before


def example(form: Form) -> tuple[GraphModule, list[torch.Tensor]]:
    """Return an attention that is written in a form, with fake arguments."""
    is_3d = form.layout.startswith(("3", "2"))
    has_views = form.layout.endswith("views between") and is_3d
    with torch.device("meta"):
        swapped = (2, 16, 4, 8)
        inputs = [torch.empty((4, 16, 8) if is_3d else swapped) for _ in range(3)]
        shapes = {"views between": (8, 16, 16), "3 axes, views between": (2, 2, 16, 16)}
        shape = (4, 16, 16) if is_3d else (2, 1, 16, 16)
        added = torch.empty(shapes.get(form.layout, shape))
        inputs += [added, torch.empty(added.shape, dtype=torch.bool), torch.empty(1)]
        if form.cast:
            inputs[:3] = [each.bfloat16() for each in inputs[:3]]

    def scaled(scores: Any, one: Any) -> Any:
        kinds = {"divided": lambda: scores / 8.0, "multiplied": lambda: scores * 0.3}
        kinds["a tensor"] = lambda: scores * one
        return kinds.get(form.scale, lambda: scores)()

    def attention(q: Any, k: Any, v: Any, added: Any, hidden: Any, one: Any) -> Any:
        if not is_3d:
            q, k, v = (each.permute(0, 2, 1, 3) for each in (q, k, v))
        if form.scale == "on query or key":
            q = q * 0.3
        if form.layout == "einsum":
            scores = torch.einsum("bhid,bhjd->bhij", q, k)
        elif form.layout == "3 axes":
            scores = torch.bmm(q, k.transpose(1, 2))
        elif form.layout == "key not swapped last":
            scores = torch.matmul(q, k.transpose(1, 2).permute(0, 2, 3, 1))
        else:
            scores = torch.matmul(q, k.transpose(-2, -1))
        scores = scaled(scores, one)
        if form.layout == "views between":
            scores = scores.view(8, 16, 16)
        if has_views:
            scores = scores.view(2, 2, 16, 16)
        if "filled" in form.mask:
            scores = scores.masked_fill(hidden, -1e9)
        if "added" in form.mask or "bias" in form.mask:
            scores = scores + added
        if has_views:
            scores = scores.view(4, 16, 16)
        if form.cast:
            scores = scores.float()
        weights = torch.softmax(scores, -1 if form.softmax_axis == "last" else -2)
        if form.cast:
            weights = weights.to(torch.bfloat16)
        if form.dropout:
            weights = torch.nn.functional.dropout(weights, 0.1, True)
        if form.layout == "views between":
            weights = weights.view(2, 4, 16, 16)
        if form.layout == "einsum":
            output = torch.einsum("bhij,bhjd->bhid", weights, v)
        else:
            if form.layout == "weights right of the values":
                weights, v = v.transpose(-2, -1), weights.transpose(-2, -1)
            output = (torch.bmm if form.layout == "3 axes" else torch.matmul)(weights, v)
        return (output, weights) if form.weights_used else (output,)

    return torch.fx.symbolic_trace(attention), inputs


@cache
def is_known(form: Form, training: bool = False) -> bool:
    """Return whether Inductor fuses an attention that is written in a form."""
    if form.others or form.layout == HEADS:
        return False
    module, inputs = example(form)
    try:
        return num_fused(module, inputs, training) > 0
    except Exception:  # noqa: BLE001, a pattern's replacement may raise anything
        return False


def reason(form: Form, training: bool = False) -> tuple[str, ...]:
    """Return the fewest properties of a form to change so that Inductor fuses it.

    It is empty if Inductor fuses an attention of this form, so the reason is not in the form.
    """
    if form.layout == HEADS:
        return ("layout",)
    changes = [name for name, value in CHANGES.items() if getattr(form, name) != value]
    for size in range(len(changes) + 1):
        for chosen in itertools.combinations(changes, size):
            other = replace(form, **{name: CHANGES[name] for name in chosen})
            if is_known(other, training):
                return chosen
    return tuple(changes)


@dataclass(frozen=True)
class Outcome:
    """What Inductor does with an attention, and why: properties of its form.

    `outline` and `window` are digests of how it is written, without sizes and with them. `error` is
    that of Inductor, or of the run on fake tensors.
    """

    outline: str
    form: Form | None = None
    window: str = ""
    fused: bool = False
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

    windows: dict[str, bool] = field(default_factory=dict)
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
        stop = max(net.place[each.output] + 1 for each in new.values())
        values = run_on_meta(graph, net, stop)
    for key, attention in new.items():
        tried.outlines[key] = _outcome(net, attention, values, training, tried, key)
    return Found(num_calls, tuple(tried.outlines[key] for _, key in found))


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
            tried.windows[digest] = num_fused(module, arguments, training) > 0
    except Exception as error:  # noqa: BLE001, whatever torch raises
        logging.debug(traceback.format_exc())
        return Outcome(key, form, digest, error=f"{type(error).__name__}: {error}"[:400])
    if tried.windows[digest]:
        return Outcome(key, form, digest, True)
    return Outcome(key, form, digest, False, reason(form, training))


def records(file: Path) -> list[Counted]:
    """Return the records of a file, which may not be there yet."""
    if not file.exists():
        return []
    return [decode(line, Counted) for line in file.read_text(encoding="utf-8").splitlines()]


def count_all(rows: Iterable[GraphRow], file: Path) -> None:
    """Count graphs that have no record yet."""
    done = records(file)
    seen = {record.full for record in done}
    tried = Tried(graphs={(record.kind, record.structure): record.found for record in done})
    for record in done:
        for each in record.found.outcomes:
            tried.outlines[each.outline] = each
            if not each.error:
                tried.windows[each.window] = each.fused
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
    "scale=multiplied": "scale multiplied, with a mask",
    "scale=on query or key": "scale on query or key",
    "scale=a tensor": "scale in a tensor",
    "scale=in baddbmm": "scale in baddbmm",
    "layout=einsum": "einsum",
    "layout=views between": "views between the products",
    "layout=key not swapped last": "key not swapped last",
    "layout=more axes": "more than four axes",
    "layout=weights right of the values": "values times weights",
    f"layout={HEADS}": "torch's multi-head attention that returns its weights",
    "cast=True": "softmax in another dtype",
    "dropout=True": "dropout",
    "softmax_axis=another": "softmax along another axis",
    "weights_used=True": "weights used elsewhere",
}
"""Property of a form, with its value -> the reason in words."""


def words(outcome: Outcome) -> str:
    """Return what became of an attention, in a few words."""
    form = outcome.form
    if outcome.error or form is None:
        is_pattern = "Attempting to broadcast" in outcome.error
        return "error in Inductor" if is_pattern else "not tried"
    if outcome.fused:
        return "fused" if form.softmax_axis == "last" else "fused along the wrong axis"
    parts = []
    for name in outcome.reason:
        text = f"{name}={getattr(form, name)}"
        if name == "layout" and form.layout[0].isdigit():
            parts.append("heads in the batch axis")
        elif name == "mask":
            parts.append("mask filled in" if "filled" in form.mask else "bias or mask added")
        elif name == "others":
            parts.append("other ops between")
        else:
            parts.append(WORDS.get(text, text))
    return "; ".join(parts) or "other"


def tables(found: Sequence[Counted]) -> Iterator[Table]:
    """Yield the totals by kind of graph, and the reasons."""
    heads = ("graphs", "structures", "attentions")
    totals = Table("Attention in captured graphs", ("", *heads))
    forward = [record for record in found if record.kind != "backward"]
    by_words: dict[str, list[tuple[Counted, Outcome]]] = defaultdict(list)
    for record in forward:
        for outcome in record.found.outcomes:
            by_words[words(outcome)].append((record, outcome))
    pairs = [pair for each in by_words.values() for pair in each]
    called = [record for record in forward if record.found.calls]
    rows = {
        "calls of attention": (called, sum(record.found.calls for record in called)),
        "written out by hand": ([record for record, _ in pairs], len(pairs)),
    }
    for name in ("fused", "fused along the wrong axis", "error in Inductor", "not tried"):
        some = by_words.pop(name, [])
        rows[name] = ([record for record, _ in some], len(some))
    lost = [pair for each in by_words.values() for pair in each]
    rows["not fused"] = ([record for record, _ in lost], len(lost))
    totals.rows.extend(_row(name, *cells) for name, cells in rows.items())
    yield replace(totals, note=f"{len(forward)} graphs, without those of backward passes.")
    reasons = Table("Not fused, by the least that has to change", ("reason", *heads, "%"))
    for name, some in sorted(by_words.items(), key=lambda item: -len(item[1])):
        share = f"{100 * len(some) / len(lost):.1f}"
        reasons.rows.append((*_row(name, [record for record, _ in some], len(some)), share))
    yield reasons
    forms = Table("Not fused, by property", ("property", "attentions", "%"))
    counts = Counter(
        f"{name}: {getattr(outcome.form, name)}"
        for _, outcome in lost
        for name, value in CHANGES.items()
        if outcome.form and getattr(outcome.form, name) != value
    )
    for name, number in counts.most_common():
        forms.rows.append((name, str(number), f"{100 * number / len(lost):.1f}"))
    yield forms


def _row(name: str, some: Sequence[Counted], num_attentions: int) -> tuple[str, ...]:
    graphs = {record.full for record in some}
    structures = {record.structure for record in some}
    return (name, str(len(graphs)), str(len(structures)), str(num_attentions))


if __name__ == "__main__":
    main()
