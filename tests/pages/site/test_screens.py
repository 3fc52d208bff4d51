"""Every kind of page as Chromium shows it, wide and narrow, light and dark.

Screenshots are kept in the folder that PASSNET_SCREENSHOTS names.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from passnet.judge.suite.suite import make_suite
from passnet.judge.task import TaskGraph
from passnet.optimizer.record import BackendRecord, PlaceRecord, SizeRange, SizeRecord
from passnet.pages.optimizer.page import optimized_page
from passnet_site.pages.build import build_site, read_parts
from tests.judge.folders import small_graph
from tests.pages.optimizer.test_page import form_of, range_of, record_of
from tests.pages.site.runs import write_run

pytestmark = pytest.mark.slow

LONG = "residual_layer_norm-a_net_of_a_long_name-the_same_stem"


@pytest.fixture(scope="module")
def optimized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a net with many inputs, sizes, long names of backends and a refused one."""
    backends = (
        BackendRecord("eager", "ok", plain_ms=166.6744, speedup=1.0, error=2e-8, eager_error=2e-8),
        *(
            BackendRecord(
                *(f"aot_autotune_frozen_{name}", "ok", None, 34.7, 1066.6744, 966.0, 1e-7, 2e-8),
                speedup=2.0,
                speedup_low=1.8,
                speedup_high=2.2,
                says="AOTInductor with freezing and max_autotune",
            )
            for name in ("weights", "arguments")
        ),
        BackendRecord("torchao_int8", "wrong", "output 28 is off by 1.5e+00" * 4),
    )
    sizes = SizeRecord((1, 128), "eager", {"eager": 63.4}, 1.0, 1.0, 1.0)
    ranges = tuple(SizeRange(name, 1, 512, 128, ()) for name in ("batch", "length"))
    form = replace(
        form_of(range_of("a" * 64, PlaceRecord(0, 0, 2, True))),
        inputs=("int64[2, 5]", *["float32[2, 4, 9, 64]"] * 56),
        chosen="aot_autotune_frozen_weights",
        engines=backends,
        sizes=(sizes,),
        size_ranges=ranges,
        allowed_error=1e-3,
    )
    path = tmp_path_factory.mktemp("optimized") / "report.html"
    path.write_text(optimized_page(record_of(form, form, net="Net")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of many graphs whose names differ at their ends."""
    folder = tmp_path_factory.mktemp("named")
    names = [f"{LONG}-{number:02}" for number in range(60)]
    graphs = [TaskGraph(LONG, name, small_graph((8, 8)).graph) for name in names]
    suite = make_suite("named", graphs)
    run = write_run(folder / "run", suite, factors={"eager": 1.0, "inductor": 1.5})
    build_site(read_parts([run], None, [suite], None), folder / "out", "Named")
    return folder / "out"


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=str)
def screen(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    width, scheme = request.param
    viewport = {"width": width, "height": 844}
    context = browser.new_context(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.name = f"{width}-{scheme}"
    yield page
    context.close()


def show(screen: Any, path: Path) -> bytes:
    """Open a page, wait for its tables, and return its screenshot."""
    screen.goto(path.as_uri())
    if "data-table" in path.read_text(encoding="utf-8"):
        screen.wait_for_selector(".grid[data-ready]", timeout=30_000)
    folder = os.environ.get("PASSNET_SCREENSHOTS")
    name = f"{path.parent.name}-{path.stem}"[:60]
    return screen.screenshot(path=folder and Path(folder, f"{name}-{screen.name}.png"))


def faults(screen: Any) -> list[str]:
    """Return the rules of axe that a page breaks, each with the first element that does."""
    screen.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = screen.evaluate("axe.run()")["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:150]}" for each in found]


def is_narrow(screen: Any) -> bool:
    return screen.viewport_size["width"] < 400


def test_the_page_of_a_net_shows_backend_time_speedup_and_error_first(
    optimized: Path, screen: Any
) -> None:
    assert show(screen, optimized)
    region = screen.locator("[aria-label^=Backends]").first
    heads = [each for each in region.locator("thead > tr > *").all() if each.is_visible()]
    first = ["backend", "ms", "speedup (95 %)", "error"]
    assert [each.inner_text() for each in heads[:4]] == first
    assert len(heads) == 4 or not is_narrow(screen)
    for cell in (*heads[:4], *region.locator("tbody > tr:first-child > td").all()):
        box = cell.bounding_box()
        assert box is None or box["x"] + box["width"] <= screen.viewport_size["width"]
        assert box is None or box["y"] + box["height"] <= screen.viewport_size["height"]
    assert "56 × float32[2, 4, 9, 64]" in screen.locator("h2").first.inner_text()


def test_no_page_breaks_a_rule_of_axe(
    optimized: Path, site: Path, named: Path, screen: Any
) -> None:
    pytest.importorskip("axe_playwright_python", reason="needs passnet[browser]")
    tasks = sorted(path for path in site.glob("tasks/*/*.html"))
    attempts = sorted(site.glob("attempts/0*.html"))
    studies = sorted(site.glob("studies/0*.html"))
    places = ("index", "boards/hostile", "trials/hostile", "tasks/index", "attempts/index",
              "studies/index", "about")  # fmt: skip
    pages = [*(site / f"{place}.html" for place in places), tasks[0], attempts[0], studies[0]]
    found = {}
    for path in (*pages, optimized, named / "trials" / "named.html"):
        assert show(screen, path)
        if broken := faults(screen):
            found[path.name] = broken
        assert (
            screen.evaluate("document.documentElement.scrollWidth")
            <= (screen.viewport_size["width"])
        ), path
    assert found == {}


@pytest.mark.parametrize("place", ["trials/named", "tasks/index", "boards/named"])
def test_names_are_shown_whole(named: Path, screen: Any, place: str) -> None:
    show(screen, named / f"{place}.html")
    cut = screen.evaluate(
        """[...document.querySelectorAll('.tabulator-cell:first-child')].filter((cell) =>
        cell.scrollWidth > cell.clientWidth + 1 || cell.scrollHeight > cell.clientHeight + 1)
        .map((cell) => cell.textContent)"""
    )
    assert cut == []
    shown = screen.locator(".tabulator-cell:first-child").all_inner_texts()
    assert shown and len({*shown}) >= len(shown) / 2


def test_a_column_of_unknown_values_is_left_out(named: Path, screen: Any) -> None:
    show(screen, named / "tasks" / "index.html")
    heads = {head.inner_text() for head in screen.locator(".tabulator-col:visible").all()}
    assert "task" in heads and "domain" not in heads
    assert screen.locator("text=unknown").locator("visible=true").count() == 0
