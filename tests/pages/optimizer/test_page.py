from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from passnet.api import optimize_calls
from passnet.bench.environment import Environment
from passnet.core.hardware import this_hardware
from passnet.core.records.serialise import decode, encode, read_json
from passnet.judge.verdict.findings import Finding
from passnet.optimizer.choose.judging import JudgedPass, judging_settings, pass_outcome
from passnet.optimizer.choose.kept_passes import KeptPass, keep_passes, read_kept_passes
from passnet.optimizer.record import (
    RECORD_FILE,
    BackendRecord,
    BlockRecord,
    OptimizedRecord,
    PlaceRecord,
    RangeRecord,
    SignatureRecord,
)
from passnet.optimizer.settings import OptimizeSettings
from passnet.pages.optimizer.net_blocks import net_blocks
from passnet.pages.optimizer.page import optimized_page
from passnet.passes.library.store import PassLibrary
from tests.optimizer.libraries import HERE, folder, outcome, tanh_mul, trial

HOSTILE = '</pre></style><script>alert(1)</script>" onload=x \u202e'
ENVIRONMENT = Environment("3.11", "2.13", "0.1", "Linux", "<cpu>", 2, 1024, "g++", 0.0)

BACKENDS = (
    BackendRecord("eager", "ok", plain_ms=2.0, speedup=1.0, speedup_low=1.0, speedup_high=1.0),
    BackendRecord("aot", "ok", ms=1.0, speedup=2.0, speedup_low=1.8, speedup_high=2.2),
    BackendRecord("graph", "refused", "<b>2 graphs & not one"),
)
BLOCKS = (
    BlockRecord("layer", "Linear", 1.5),
    BlockRecord("layer.<0>", "ReLU", 0.5),
    BlockRecord("head", "Linear", 0.5),
)
OP_BLOCKS = (("layer.<0>", "layer.<0>.deep", "layer", "head", ""),)


class Parsed(HTMLParser):
    """The texts, tags, anchors and links of a page, in which all that is opened must be closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name == "id":
                self.anchors.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def form_of(*ranges: RangeRecord, uses_passes: bool | None = True) -> SignatureRecord:
    return SignatureRecord(
        ("float32[1]",),
        "aot",
        BACKENDS,
        1.0,
        2.0,
        2.0,
        1.9,
        2.1,
        BLOCKS,
        ranges,
        "",
        OP_BLOCKS,
        uses_passes,
    )


def range_of(digest: str | None, *places: PlaceRecord) -> RangeRecord:
    num_chosen = sum(place.is_chosen for place in places)
    return RangeRecord(
        ("torch.tanh", "Tensor.mul"),
        len(places),
        num_chosen,
        "compiler",
        "wins",
        1.0,
        0.5,
        0.45,
        2.0,
        1.9,
        2.1,
        None,
        digest,
        places,
    )


def record_of(*forms: SignatureRecord, net: str = "Net<X>") -> OptimizedRecord:
    return OptimizedRecord(net, "", "", 1, False, ENVIRONMENT, forms, "0.1")


@pytest.fixture
def kept(tmp_path: Path) -> KeptPass:
    """A pass with its trial, kept as for a net."""
    library = PassLibrary(tmp_path / "library")
    judged = pass_outcome(JudgedPass(folder(), trial()), judging_settings())
    entry = library.add(tanh_mul(), "compiler", HERE, folder(), judged)
    library.add(tanh_mul(), "search", HERE, folder("b * a.tanh()"), outcome())
    keep_passes(library, {entry.digest}, tmp_path / "kept")
    [found] = read_kept_passes(tmp_path / "kept")
    return found


def test_a_page_says_what_was_tried_and_loads_nothing() -> None:
    page = optimized_page(record_of(form_of()))
    parsed = Parsed(page)
    assert "://" not in page and "script" not in parsed.tags
    for part in (
        "Net<X>, optimised",
        "<cpu>",
        "refused: <b>2 graphs & not one",
        "<0>",
        "1.90 to 2.10",
        "2.00 (1.80 to 2.20)",
        "25 %",
    ):
        assert part in parsed.text, part


def test_every_claim_links_to_what_is_there(kept: KeptPass) -> None:
    places = (PlaceRecord(0, 0, 2, True), PlaceRecord(0, 2, 4, True), PlaceRecord(0, 4, 5, False))
    form = form_of(range_of(kept.entry.digest, *places), range_of(None, places[2]))
    page = Parsed(optimized_page(record_of(form, form), [kept, kept]))
    assert len(set(page.anchors)) == len(page.anchors)
    missing = [each for each in page.links if each.removeprefix("#") not in page.anchors]
    assert not missing
    # in each form two blocks in which a pass was chosen, the speedup of its row and its outcome
    assert page.links.count("#trial-0") == 2 * 4
    assert page.links.count("#form-1-range-0") == 2
    assert page.links[:2] == ["#form-0-way-1", "#form-0-way-0"]


def test_a_trial_is_on_the_page_with_its_record_settings_and_sources(kept: KeptPass) -> None:
    page = Parsed(optimized_page(record_of(form_of(range_of(kept.entry.digest))), [kept]))
    for part in (
        kept.entry.digest,
        "seed of the inputs 0",
        "t = -6",
        "2.00 (1.90 to 2.10)",
        HERE.text,
        '"reference_ms": 1.0',
        '"max_repeats": 3',
        "return a.tanh() * b",
        "Fuse.py, ",
    ):
        assert part in page.text, part
    assert "b * a.tanh()" not in page.text


def test_passes_that_are_not_in_use_are_said_not_to_be(kept: KeptPass) -> None:
    each = range_of(kept.entry.digest, PlaceRecord(0, 0, 2, True))
    page = Parsed(optimized_page(record_of(form_of(each, uses_passes=False)), [kept]))
    assert "None of these passes is in use: the fastest backend, aot , has none." in page.text
    page = Parsed(optimized_page(record_of(form_of(each)), [kept]))
    assert "None of these" not in page.text and "Those chosen are in use." in page.text


def test_hostile_names_and_sources_stay_text(kept: KeptPass) -> None:
    hostile = replace(
        kept,
        entry=replace(
            kept.entry,
            author=HOSTILE,
            ops=(HOSTILE,),
            error=HOSTILE,
            forms=(HOSTILE,),
            program=HOSTILE,
        ),
        trial=trial(error=HOSTILE, findings=(Finding("flag", HOSTILE, HOSTILE),)),
        files={HOSTILE: HOSTILE},
    )
    each = replace(
        range_of(kept.entry.digest, PlaceRecord(0, 0, 2, True)),
        ops=(HOSTILE,) * 9,
        author=HOSTILE,
        status=HOSTILE,
        error=HOSTILE,
    )
    engines = (*BACKENDS, BackendRecord(HOSTILE, "refused", HOSTILE))
    form = replace(
        form_of(each, replace(each, num_chosen=0, saved_ms=0.0)),
        inputs=(HOSTILE,),
        chosen=HOSTILE,
        engines=engines,
        blocks=(BlockRecord(HOSTILE, HOSTILE, 1.0),),
    )
    record = replace(record_of(form, net=HOSTILE), passnet=HOSTILE)
    page = optimized_page(record, [hostile])
    assert "<script" not in page and "\u202e" not in page
    parsed = Parsed(page)
    assert parsed.texts.count(HOSTILE.replace("\u202e", "\\u202e")) >= 3


def test_a_record_of_an_older_version_has_a_page_too() -> None:
    places = (PlaceRecord(0, 0, 2, True),)
    text = encode(record_of(form_of(range_of("a" * 64, *places)))).decode()
    for new in (
        '"speedup":1.0,"speedup_low":1.0,"speedup_high":1.0',
        '"speedup":2.0,"speedup_low":1.8,"speedup_high":2.2',
        '"speedup":null,"speedup_low":null,"speedup_high":null',
    ):
        assert f",{new}" in text
        text = text.replace(f",{new}", "")
    start, end = text.index(',"speedup":2.0,"speedup_low":1.9,"speedup_high":2.1,"error"'), None
    end = text.index("}]}]", start) + 2
    text = text[:start] + text[end:]
    text = text.replace(f',"op_blocks":{encode(OP_BLOCKS).decode()},"uses_passes":true', "")
    record = decode(text, OptimizedRecord)
    assert record.forms[0].ranges[0].places == () and record.forms[0].uses_passes is None
    page = Parsed(optimized_page(record))
    assert "tanh mul" in page.text and "not kept" in page.text and "are in use" not in page.text
    assert "1.90 to 2.10" in page.text


def test_each_block_counts_what_was_replaced_in_it() -> None:
    inner, across = PlaceRecord(0, 0, 2, True), PlaceRecord(0, 2, 4, True)
    root = net_blocks(form_of(range_of("a", inner), range_of("b", across)), "Net")
    layer, head = root.within
    [relu] = layer.within
    assert [each.num_ops for each in (root, layer, relu, head)] == [5, 3, 2, 1]
    assert [each.num_replaced for each in (root, layer, relu, head)] == [4, 3, 2, 1]
    assert [each.saved_ms for each in (root, layer, relu, head)] == [0.9, 0.45, 0.45, 0.0]
    assert relu.replaced == [(0, inner)] and root.replaced == [(1, across)]


def test_a_net_of_many_blocks_is_drawn_whole() -> None:
    many = tuple(BlockRecord(".".join(["m"] * depth), "Block", 1.0) for depth in range(1, 301))
    page = Parsed(optimized_page(record_of(replace(form_of(), blocks=many))))
    assert page.texts.count("Block") == 300


def test_a_block_within_a_list_of_modules_has_the_name_of_the_list() -> None:
    blocks = (BlockRecord("encoder", "Encoder", 1.0), BlockRecord("encoder.layer.0", "Layer", 1.0))
    page = Parsed(optimized_page(record_of(replace(form_of(), blocks=blocks))))
    assert "encoder" in page.texts and "layer.0" in page.texts


class TanhMul(torch.nn.Module):
    """What `tanh_mul` is, in a block of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.tanh = torch.nn.Tanh()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.tanh(a) * b


def test_an_optimised_net_has_a_page_with_the_trial_of_its_pass(tmp_path: Path) -> None:
    library = PassLibrary(tmp_path / "library")
    entry = library.add(tanh_mul(), "compiler", this_hardware(), folder(), outcome())
    settings = OptimizeSettings(
        backends=("passes",),
        authors=("library",),
        seconds=0.02,
        threads=1,
        library=str(library.folder),
    )
    call = ((torch.ones(4, 8), torch.ones(4, 8)), {})
    optimize_calls(TanhMul().eval(), [call], settings, tmp_path / "out")
    [form] = read_json(tmp_path / "out" / RECORD_FILE, OptimizedRecord).forms
    assert form.op_blocks == (("tanh", ""),)
    [won] = [each for each in form.ranges if each.num_chosen]
    assert won.digest == entry.digest and won.speedup_high == 2.1
    assert won.places == (PlaceRecord(0, 0, 2, True),)
    assert all(each.speedup_low for each in form.engines)
    page = Parsed((tmp_path / "out" / "report.html").read_text())
    assert not {each.removeprefix("#") for each in page.links} - set(page.anchors)
    assert "#trial-0" in page.links and "2 of 2 ops replaced" in page.text
    assert "return a.tanh() * b" in page.text


def test_the_text_of_a_page_is_the_golden_one() -> None:
    places = (PlaceRecord(0, 0, 2, True), PlaceRecord(0, 2, 4, True), PlaceRecord(0, 4, 5, False))
    lost = replace(
        range_of(None, places[2]),
        ops=("torch.relu",) * 7,
        status="loses",
        saved_ms=0.0,
        error="too slow",
    )
    form = form_of(range_of("a" * 64, *places), lost)
    page = Parsed(optimized_page(record_of(form, replace(form, uses_passes=False))))
    texts = [text for text in page.texts if not text.lstrip().startswith(("/*", ":root"))]
    lines = [line for line in (" ".join(text.split()) for text in texts) if line]
    golden = Path(__file__).parents[2] / "golden" / "optimized_page.txt"
    assert lines == golden.read_text(encoding="utf-8").splitlines()
