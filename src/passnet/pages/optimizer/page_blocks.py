"""On the page of an optimised net, its blocks: coloured by time, with what was replaced in each."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from passnet.optimizer.record import FormRecord
from passnet.pages.optimizer.page_text import in_ms, interval, link, short_ops, shown, what_is_used
from passnet.pages.optimizer.replaced import NetBlock, net_blocks

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of the net's time at which the colour changes."""

OPEN_SHARE = 0.1
"""Blocks of at least this share are open at first."""


@dataclass(frozen=True, slots=True)
class _Drawing:
    """One drawing of blocks: of the form of a number, whose blocks take `total_ms` together;
    `trials` are the anchors of trials, by digest.
    """

    form: FormRecord
    number: int
    total_ms: float
    trials: Mapping[str, str]


def blocks_section(
    form: FormRecord, number: int, net: str, trials: Mapping[str, str]
) -> Iterator[str]:
    """The blocks of the form of a number; `trials` are the anchors of trials, by digest."""
    root = net_blocks(form, net)
    if not root.within and not root.replaced:
        return
    yield "<h3>Where eager torch spends its time, and what was replaced</h3>"
    yield (
        '<p class="quiet">Blocks are the modules of the net; the time of one holds that of those '
        "within it, and shares are of all blocks together. Length and colour stand for time:</p>"
        f'<p class="key quiet">{"".join(_key())}</p>'
    )
    if form.ranges:
        yield (
            '<p class="quiet">An op counts as replaced where a pass was chosen for it. Saved is '
            "what passes save at least, each judged by itself, if all their ops are within the "
            f"block.{what_is_used(form, number)}</p>"
        )
    total_ms = sum(block.ms for block in root.within) or form.eager_ms
    yield '<ul class="blocks">'
    yield from _block(root, "", 0, _Drawing(form, number, total_ms, trials))
    yield "</ul>"


def _key() -> Iterator[str]:
    for step in range(len(SHARES) + 1):
        low = (
            f"{100 * SHARES[step - 1]:.0f} % and more" if step else f"below {100 * SHARES[0]:.0f} %"
        )
        yield f'<span><i class="time t{step}"></i>{low}</span>'


def _block(block: NetBlock, outer: str, depth: int, drawing: _Drawing) -> Iterator[str]:
    """A block, which is within `outer`, as an item of a list, with those within it."""
    row = _row(block, outer, drawing)
    if not block.within and not block.replaced:
        yield f'<li><div class="row" style="--d:{depth}">{row}</div></li>'
        return
    is_open = not depth or block.ms >= OPEN_SHARE * drawing.total_ms
    yield (
        f"<li><details{' open' if is_open else ''}>"
        f'<summary class="row" style="--d:{depth}">{row}</summary>'
    )
    places = Counter(number for number, _ in block.replaced)
    for number, count in places.items():
        yield f'<p class="hit" style="--d:{depth + 1}">{_replaced(number, count, drawing)}</p>'
    if block.within:
        yield "<ul>"
        for each in block.within:
            yield from _block(each, block.name, depth + 1, drawing)
        yield "</ul>"
    yield "</details></li>"


def _row(block: NetBlock, outer: str, drawing: _Drawing) -> str:
    """The cells of a block: what it is, its time, and what was replaced."""
    share = block.ms / drawing.total_ms if block.name else 1.0
    inner = block.name.removeprefix(f"{outer}.")  # a list of modules never runs, and is no block
    name = f"<b>{shown(inner)}</b> " if inner else ""
    step, width = bisect_right(SHARES, share), 100 * min(share, 1)
    bar = f'<span class="time t{step}" style="width:{width:.1f}%"></span>'
    did = ""
    if block.num_replaced:
        did = f'<span class="mark">{block.num_replaced} of {block.num_ops} ops replaced</span>'
        if block.saved_ms:
            did += f", saves {in_ms(block.saved_ms)} ms"
    return (
        f'<span class="name" title="{shown(block.name or block.kind)}">{name}'
        f'<span class="quiet">{shown(block.kind)}</span></span><span>{bar}</span>'
        f'<span class="n">{in_ms(block.ms)}</span><span class="n">{100 * share:.0f} %</span>'
        f'<span class="did">{did}</span>'
    )


def _replaced(number: int, count: int, drawing: _Drawing) -> str:
    """What was replaced in a block by the pass for one range."""
    each = drawing.form.ranges[number]
    times = "" if count == 1 else f", {count} times"
    pass_of = link(f"form-{drawing.number}-range-{number}", f"the pass of {shown(each.author)}")
    trial = drawing.trials.get(each.digest or "")
    return (
        f"<code>{shown(short_ops(each.ops))}</code>{times}: {pass_of}, "
        f"{interval(each.speedup, each.speedup_low, each.speedup_high)} times as fast, saves "
        f"{in_ms(each.saved_ms * count)} ms at least"
        + (f" ({link(trial, 'its trial')})" if trial else "")
    )
