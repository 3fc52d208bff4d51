"""The page of an optimised net: one HTML file that opens from disk and needs nothing else."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from passnet.core.records.serialise import encode, write_text
from passnet.optimizer.choose.kept_passes import KeptPass
from passnet.optimizer.record import BackendRecord, OptimizedRecord, RangeRecord, SignatureRecord
from passnet.pages.optimizer.net_blocks import NetBlock, net_blocks
from passnet.pages.site.pages import render
from passnet.pages.tables.cells import in_ms, interval
from passnet.passes.library.entries import saved_ms

PAGE_FILE = "report.html"

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of the net's time at which the colour changes."""

OPEN_SHARE = 0.1
"""Blocks with at least this share are open at first."""


@dataclass(frozen=True, slots=True)
class BackendRow:
    """A backend in the table of an input signature.

    Args:
        anchor: the id of its row.
        ms: milliseconds of a call; None if it was not timed.
        width: length of its bar, in per cent of the longest one.
    """

    engine: BackendRecord
    anchor: str
    is_used: bool
    ms: float | None
    speedup: float | None
    width: float


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block in the list of blocks, which has all blocks in the order of the page.

    Args:
        name: of the module, without the name of the block around it.
        depth: the number of blocks around it.
        share: its share of the net's time.
        step: the number of its colour.
        passes: how often the pass of a range is used in it, by the number of the range.
        num_closed: the blocks around it that end with it.
    """

    block: NetBlock
    name: str
    depth: int
    share: float
    step: int
    is_open: bool
    passes: Mapping[int, int]
    num_closed: int

    @property
    def is_leaf(self) -> bool:
        """Whether there is nothing to unfold."""
        return not self.block.within and not self.passes


@dataclass(frozen=True, slots=True)
class SignaturePart:
    """The part of the page for one input signature; `ranges` have their numbers."""

    form: SignatureRecord
    number: int
    anchors: Mapping[str, str]
    backends: Sequence[BackendRow]
    blocks: Sequence[BlockRow]
    ranges: Sequence[tuple[int, RangeRecord]]


def write_optimizer_page(
    folder: Path, record: OptimizedRecord, kept: Sequence[KeptPass] = ()
) -> None:
    """Write the page of an optimised net into its folder; `kept` are the passes that it cites."""
    write_text(folder / PAGE_FILE, optimized_page(record, kept))


def optimized_page(record: OptimizedRecord, kept: Sequence[KeptPass] = ()) -> str:
    """Return the page of a record; `kept` are the judged passes that it cites."""
    judged = {each.entry.digest: each for each in kept}
    return render(
        "optimized",
        record=record,
        threads="one thread" if record.num_threads == 1 else f"{record.num_threads} threads",
        signatures=[
            _signature_part(form, number, record.net) for number, form in enumerate(record.forms)
        ],
        kept=judged.values(),
        trials={digest: f"trial-{number}" for number, digest in enumerate(judged)},
        key=_key(),
        saved_ms=saved_ms,
        facts=_facts,
        texts=_texts,
    )


def _key() -> list[str]:
    steps = [f"{100 * share:.0f} % and more" for share in SHARES]
    return [f"below {100 * SHARES[0]:.0f} %", *steps]


def _signature_part(form: SignatureRecord, number: int, net: str) -> SignaturePart:
    root = net_blocks(form, net)
    total_ms = sum(block.ms for block in root.within) or form.eager_ms
    has_blocks = root.within or root.replaced
    order = sorted(enumerate(form.ranges), key=lambda pair: -pair[1].saved_ms * pair[1].num_places)
    backends = _backends(form, number)
    anchors: dict[str, str] = {}
    for index, engine in enumerate(form.engines):
        anchors.setdefault(engine.engine, f"form-{number}-way-{index}")
    blocks = [*_block_rows(root, total_ms)] if has_blocks else []
    return SignaturePart(form, number, anchors, backends, blocks, order)


def _backends(form: SignatureRecord, number: int) -> list[BackendRow]:
    """Return the rows of all backends, the fastest first."""
    longest_ms = max((engine.used_ms or 0.0 for engine in form.engines), default=0.0)
    rows = []
    for index, engine in enumerate(form.engines):
        ms = engine.used_ms
        speedup = (engine.speedup or form.eager_ms / ms) if ms else None  # older records have none
        width = 100 * ms / longest_ms if ms else 0.0
        is_used = engine.engine == form.chosen
        rows.append(BackendRow(engine, f"form-{number}-way-{index}", is_used, ms, speedup, width))
    return sorted(rows, key=lambda row: float("inf") if row.ms is None else row.ms)


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
            not depth or share >= OPEN_SHARE,
            Counter(number for number, _ in block.replaced),
            0 if block.within else num_closed,
        )
        inner = [(child, block.name, depth + 1, 0) for child in block.within]
        if inner:
            inner[-1] = (*inner[-1][:3], num_closed + 1)
        stack += reversed(inner)


def _texts(judged: KeptPass) -> dict[str, str]:
    """Return the texts of a judged pass by name: its range, its files and the judge's records."""
    texts = {"range": judged.entry.program, **judged.files}
    if judged.trial is not None:
        texts["record of the judge"] = _json(judged.trial)
    if judged.settings is not None:
        texts["settings of the judge"] = _json(judged.settings)
    return texts


def _json(record: object) -> str:
    return msgspec.json.format(encode(record), indent=2).decode()


def _facts(judged: KeptPass) -> Iterator[tuple[str, str]]:
    """Yield the facts of a judged pass with their names."""
    entry, trial = judged.entry, judged.trial
    yield "entry of the library", entry.digest
    yield "arguments", ", ".join(entry.forms)
    yield f"judged {entry.origin}", f"{entry.judged}, by passnet {entry.passnet}"
    yield "on", entry.hardware.text
    if judged.settings is not None:
        yield "seed of the inputs", str(judged.settings.judge.seed)
        yield "sandbox", judged.settings.sandbox
    if trial is not None:
        yield "status", trial.status
        if trial.smallest_t is not None:
            yield "correct at", f"t = {trial.smallest_t}"
        if trial.relative_error is not None:
            eager = trial.eager_error
            compared = "" if eager is None else f"; that of eager PyTorch is {eager:.1e}"
            yield "relative error against float64", f"{trial.relative_error:.1e}{compared}"
        if trial.speedup is not None:
            times = interval(trial.speedup, trial.speedup_low, trial.speedup_high)
            yield "speedup (95 % interval)", times
            eager_ms, pass_ms = in_ms(trial.reference_ms), in_ms(trial.candidate_ms)
            yield "ms of a call", f"{eager_ms} by eager PyTorch, {pass_ms} by the pass"
        if trial.self_ratio is not None:
            yield "eager PyTorch against itself", f"{trial.self_ratio:.3f} (1 on a quiet machine)"
        if trial.findings:
            yield "findings", "; ".join(f"{each.name}: {each.evidence}" for each in trial.findings)
    if entry.error:
        yield "error", entry.error
