"""Which ops of each block of a net the chosen passes replace, and what that saves."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from os.path import commonprefix

from passnet.optimizer.record import PlaceRecord, RangeRecord, SignatureRecord


@dataclass(slots=True)
class NetBlock:
    """A block of a net with the blocks within it; the net itself has the name "".

    Args:
        name: of the module.
        kind: of its class.
        ms: milliseconds that it takes in eager torch, with all that is within it.
        within: the blocks right within it, in the order in which they run.
        num_ops: the ops of the net's graph that are from it, or from within it; 0 where that was
            not recorded.
        num_replaced: how many of these chosen passes replace.
        saved_ms: what passes save at least whose ops are all within it.
        replaced: the chosen places that lie in it, but in no single block within it, each with the
            number of its range.
    """

    name: str
    kind: str
    ms: float
    within: list["NetBlock"] = field(default_factory=list)
    num_ops: int = 0
    num_replaced: int = 0
    saved_ms: float = 0.0
    replaced: list[tuple[int, PlaceRecord]] = field(default_factory=list)


def net_blocks(form: SignatureRecord, net: str) -> NetBlock:
    """Return the net as blocks within blocks; `net` is its class."""
    blocks = {"": NetBlock("", net, form.eager_ms)}
    for each in form.blocks:
        blocks.setdefault(each.name, NetBlock(each.name, each.kind, each.ms))
    for name, block in blocks.items():
        if name:
            outer = next(each for each in _outwards(name.rpartition(".")[0]) if each in blocks)
            blocks[outer].within.append(block)
    for path in (path for graph in form.op_blocks for path in graph):
        for block in _around(path, blocks):
            block.num_ops += 1
    for number, each in enumerate(form.ranges):
        for place in each.places:
            if place.is_chosen and place.graph < len(form.op_blocks):
                _mark(number, each, place, form, blocks)
    return blocks[""]


def _mark(
    number: int,
    each: RangeRecord,
    place: PlaceRecord,
    form: SignatureRecord,
    blocks: dict[str, NetBlock],
) -> None:
    """Count a chosen place in all blocks that its ops are from."""
    paths = form.op_blocks[place.graph][place.start : place.stop]
    for path in paths:
        for block in _around(path, blocks):
            block.num_replaced += 1
    shared = ".".join(commonprefix([path.split(".") for path in paths]))
    around = list(_around(shared, blocks))
    around[0].replaced.append((number, place))
    for block in around:
        block.saved_ms += each.saved_ms


def _around(path: str, blocks: dict[str, NetBlock]) -> Iterator[NetBlock]:
    """Return the blocks around a module, itself included, from the innermost one to the net."""
    return (blocks[name] for name in _outwards(path) if name in blocks)


def _outwards(path: str) -> Iterator[str]:
    """Yield the names of a module and of all modules around it.

    Examples:
        >>> list(_outwards("layers.0.norm"))
        ['layers.0.norm', 'layers.0', 'layers', '']
    """
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""
