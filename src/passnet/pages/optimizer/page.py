"""The page of an optimised net: one HTML file that opens from disk and needs nothing else."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from passnet.core.records.serialise import encode, write_text
from passnet.optimizer.choose.kept_passes import KeptPass
from passnet.optimizer.record import OptimizedRecord, SignatureRecord
from passnet.pages.figures.speed_figure import speed_figure
from passnet.pages.optimizer.net_blocks import NetBlock, net_blocks
from passnet.pages.site.pages import render
from passnet.pages.tables.cells import threads_in_words
from passnet.passes.library.entries import saved_ms

PAGE_FILE = "report.html"

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of the net's time at which the colour changes."""

OPEN_SHARE = 0.1
"""Least share of the blocks that are open at first."""


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block in the list of blocks, which has all blocks in the order of the page."""

    block: NetBlock
    name: str
    """The name of the module within the block around it."""

    depth: int
    """The number of blocks around it."""

    share: float
    """Its share of the net's time."""

    step: int
    """The number of its colour."""

    passes: Mapping[int, int]
    """Uses of passes in it, by the number of the range."""

    num_closed: int
    """The number of blocks around it that end with it."""

    @property
    def is_open(self) -> bool:
        """True if it is unfolded at first."""
        return not self.depth or self.share >= OPEN_SHARE

    @property
    def is_leaf(self) -> bool:
        """True if there is nothing to unfold."""
        return not self.block.within and not self.passes


def write_optimizer_page(
    folder: Path, record: OptimizedRecord, kept: Sequence[KeptPass] = ()
) -> None:
    """Write the page of an optimised net into its folder; `kept` are the passes that it cites."""
    write_text(folder / PAGE_FILE, optimized_page(record, kept))


def optimized_page(record: OptimizedRecord, kept: Sequence[KeptPass] = ()) -> str:
    """Return the page of a record; `kept` are the judged passes that it cites."""
    judged = {kept_pass.entry.digest: kept_pass for kept_pass in kept}
    return render(
        "optimized",
        record=record,
        threads=threads_in_words(record.num_threads),
        signatures=[
            _signature_part(form, number, record.net) for number, form in enumerate(record.forms)
        ],
        kept=judged.values(),
        trials={digest: f"trial-{number}" for number, digest in enumerate(judged)},
        shares=SHARES,
        saved_ms=saved_ms,
        texts=_texts,
    )


def _signature_part(form: SignatureRecord, number: int, net: str) -> dict[str, Any]:
    """Return the facts of an input signature, with the fastest backend and largest saving first."""
    root = net_blocks(form, net)
    total_ms = sum(block.ms for block in root.within) or form.eager_ms
    engines = [(f"form-{number}-way-{n}", engine) for n, engine in enumerate(form.engines)]
    savings = {n: -row.saved_ms * row.num_places for n, row in enumerate(form.ranges)}
    return {
        "form": form,
        "number": number,
        "inputs": inputs_in_words(form.inputs),
        "anchors": {engine.engine: anchor for anchor, engine in reversed(engines)},
        "backends": sorted(engines, key=lambda pair: -(pair[1].speedup or 0.0)),
        "longest_ms": max((engine.used_ms or 0.0 for engine in form.engines), default=0.0),
        "blocks": [*_block_rows(root, total_ms)] if root.within or root.replaced else [],
        "speeds": "" if form.allowed_error is None else Markup(speed_figure(form)),
        "ranges": [(n, form.ranges[n]) for n in sorted(savings, key=savings.__getitem__)],
    }


def inputs_in_words(inputs: Sequence[str]) -> str:
    """Return inputs as text, with equal neighbours once.

    Examples:
        >>> inputs_in_words(["int64[2]", "float32[4]", "float32[4]"])
        'int64[2], 2 × float32[4]'
    """
    counts = ((text, len([*same])) for text, same in groupby(inputs))
    return ", ".join(text if count == 1 else f"{count} × {text}" for text, count in counts)


def _block_rows(root: NetBlock, total_ms: float) -> Iterator[BlockRow]:
    """Yield the rows of all blocks; without recursion, since nets nest deeply."""
    stack = [(root, "", 0, 0)]
    while stack:
        block, outer, depth, num_closed = stack.pop()
        share = block.ms / total_ms if block.name else 1.0
        yield BlockRow(
            block,
            block.name.removeprefix(f"{outer}."),  # a list of modules never runs, and is no block
            depth,
            share,
            bisect_right(SHARES, share),
            Counter(number for number, _ in block.replaced),
            0 if block.within else num_closed,
        )
        inner = [(child, block.name, depth + 1, 0) for child in block.within]
        if inner:
            inner[-1] = (*inner[-1][:3], num_closed + 1)
        stack += reversed(inner)


def _texts(judged: KeptPass) -> dict[str, str]:
    """Return the texts of a judged pass by name: its range, its files and the judge's records."""
    records = {"record of the judge": judged.trial, "settings of the judge": judged.settings}
    texts = {"range": judged.entry.program, **judged.files}
    for name, record in records.items():
        if record is not None:
            texts[name] = msgspec.json.format(encode(record), indent=2).decode()
    return texts
