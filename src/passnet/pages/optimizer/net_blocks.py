"""The blocks of a net, with the ops that chosen passes replace in each, and the savings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os.path import commonprefix

from passnet.optimizer.record import PlaceRecord, SignatureRecord


@dataclass(slots=True)
class NetBlock:
    """A block of a net with the blocks within it; the net itself has the name ""."""

    name: str
    kind: str
    """The class of the module."""

    ms: float
    """Milliseconds in eager PyTorch, with all blocks within it."""

    within: list["NetBlock"] = field(default_factory=list)
    """The blocks directly within it, in the order in which they run."""

    num_ops: int = 0
    """The number of the graph's ops from it or from within it; 0 in records without it."""

    num_replaced: int = 0
    """The number of these ops that chosen passes replace."""

    saved_ms: float = 0.0
    """Least savings of the passes whose ops are all within it."""

    replaced: list[tuple[int, PlaceRecord]] = field(default_factory=list)
    """Chosen places in it, but in no single block within it, with the number of their range."""


def net_blocks(form: SignatureRecord, net: str) -> NetBlock:
    """Return the net as blocks within blocks; `net` is its class."""
    blocks = {"": NetBlock("", net, form.eager_ms)}
    for record in form.blocks:
        blocks.setdefault(record.name, NetBlock(record.name, record.kind, record.ms))
    for name, block in blocks.items():
        if name:
            next(_around(name.rpartition(".")[0], blocks)).within.append(block)
    for path in (path for graph in form.op_blocks for path in graph):
        for block in _around(path, blocks):
            block.num_ops += 1
    for number, record in enumerate(form.ranges):
        for place in record.places:
            if not place.is_chosen or place.graph >= len(form.op_blocks):
                continue
            paths = form.op_blocks[place.graph][place.start : place.stop]
            for block in (block for path in paths for block in _around(path, blocks)):
                block.num_replaced += 1
            shared = ".".join(commonprefix([path.split(".") for path in paths]))
            around = list(_around(shared, blocks))
            around[0].replaced.append((number, place))
            for block in around:
                block.saved_ms += record.saved_ms
    return blocks[""]


def _around(path: str, blocks: Mapping[str, NetBlock]) -> Iterator[NetBlock]:
    """Yield the blocks around a module, itself included, from the innermost one to the net."""
    while path:
        if path in blocks:
            yield blocks[path]
        path = path.rpartition(".")[0]
    yield blocks[""]
