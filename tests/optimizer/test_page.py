from html.parser import HTMLParser

import torch

from passnet.bench.environment import Environment
from passnet.optimizer.blocks import block_times
from passnet.optimizer.net_call import NetCall
from passnet.optimizer.page import optimized_page
from passnet.optimizer.record import BlockRecord, EngineRecord, FormRecord, OptimizedRecord
from tests.optimizer.nets import block

ENVIRONMENT = Environment("3.11", "2.13", "0.1", "Linux", "<cpu>", 2, 1024, "g++", 0.0)


class Texts(HTMLParser):
    """The texts of a page, and whether all that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_says_what_was_tried_and_is_whole() -> None:
    engines = (
        EngineRecord("eager", "ok", plain_ms=2.0),
        EngineRecord("aot", "ok", ms=1.0),
        EngineRecord("graph", "refused", "<b>2 graphs & not one"),
    )
    blocks = (BlockRecord("layer", "Linear", 1.5), BlockRecord("layer.<0>", "ReLU", 0.5))
    form = FormRecord(("float32[1]",), "aot", engines, 1.0, 2.0, 2.0, 1.9, 2.1, blocks)
    record = OptimizedRecord("Net<X>", "", "", 1, False, ENVIRONMENT, (form,), "0.1")
    page = optimized_page(record)
    parser = Texts()
    parser.feed(page)
    assert not parser.open and "http" not in page
    texts = " ".join(parser.texts)
    for part in ("Net<X>, optimised", "<cpu>", "refused: <b>2 graphs & not one", "layer.<0>",
                 "1.90 to 2.10", "33 %"):  # fmt: skip
        assert part in texts, part


def test_the_blocks_of_a_net_are_timed_in_the_order_in_which_they_run() -> None:
    net = torch.nn.Sequential(block(), torch.nn.Identity()).eval()
    net.forward = lambda x: net[1](net[0](x)["first"])  # type: ignore[method-assign]
    found = block_times(NetCall(net, (torch.ones(2, 8),), {}))
    assert [each.name for each in found] == ["0", "0.linear", "0.norm", "1"]
    assert found[0].ms >= found[1].ms + found[2].ms > 0
    assert not net[0]._forward_hooks
