"""Sites in a real browser, from disk: they load, sort and filter, and hostile texts stay texts."""

import json
import shutil
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from passnet.core.records.serialise import unpack_lines
from passnet_site.pages.board_pages import write_board, write_index, write_trials
from passnet_site.pages.boards import board_scores
from passnet_site.pages.build import build_site, read_parts
from passnet_site.pages.site_folder import SiteFolder
from tests.conftest import ROOT
from tests.http_server import serving

MOST_BYTES = 3 * 2**20
"""What a page may load before it can be used."""

MOST_SECONDS = 5.0
"""To load the page of 10,000 trials; it takes about one on a quiet core, and tests share theirs."""

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that remembers what it complained of, and where it wanted to go."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.complaints = []
    opened.requests = []
    opened.on("console", lambda message: opened.complaints.append((message.type, message.text)))
    opened.on("pageerror", lambda error: opened.complaints.append(("error", str(error))))
    opened.on("request", lambda request: opened.requests.append(request.url))
    yield opened
    context.close()


def until(page: Any, expression: str, seconds: float = 30.0) -> None:
    """Wait until an expression is true; a page forbids the way in which the browser would wait."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def visit(page: Any, path: Path) -> None:
    page.goto(path.as_uri())
    if "data-table" in path.read_text(encoding="utf-8"):
        page.wait_for_selector("html[data-ready]", state="attached", timeout=30_000)
        until(page, "[...document.querySelectorAll('.grid')].every((each) => each.dataset.ready)")


def column(page: Any, field: str) -> list[str]:
    return page.eval_on_selector_all(
        f".tabulator-cell[tabulator-field='{field}']", "cells => cells.map((c) => c.textContent)"
    )


def test_every_page_loads_from_disk_without_a_word_and_runs_no_text_of_others(
    site: Path, page: Any
) -> None:
    paths = sorted(site.rglob("*.html"))
    assert len(paths) >= 12
    for path in paths:
        visit(page, path)
        for details in page.query_selector_all("details"):
            details.evaluate("each => { each.open = true }")
        for button in page.query_selector_all("[data-chunk]"):
            button.click()
        page.wait_for_timeout(60)
        assert page.complaints == [], path
        assert page.evaluate("window.hacked") is None, path
        assert page.query_selector("img[src='x']") is None, path
        assert page.locator("text=[object Object]").count() == 0, path
        text = page.evaluate("document.body.innerText + document.title")
        assert not set(text) & {"\u202e", "\u2066", "\x1b"}, path
    assert {url.partition(":")[0] for url in page.requests} <= {"file"}


def test_hostile_names_can_be_read_on_the_pages_that_have_them(site: Path, page: Any) -> None:
    for name in ("index.html", "boards/hostile.html", "trials/hostile.html",
                 "attempts/index.html", "studies/index.html"):  # fmt: skip
        visit(page, site / name)
        assert "<script>window.hacked=1</script>" in page.evaluate("document.body.innerText"), name


def test_heads_sort_their_columns_by_mouse_and_by_key(site: Path, page: Any) -> None:
    visit(page, site / "boards" / "hostile.html")
    head = page.locator("[data-table='lines'] .tabulator-col[tabulator-field='c1']")

    def scores() -> list[float]:
        return [float(text) for text in page.eval_on_selector_all(
            "[data-table='lines'] .speedup .value", "all => all.map((each) => each.textContent)")
            if text != "–"]  # fmt: skip

    assert scores() == sorted(scores(), reverse=True) and len(scores()) == 3
    head.click(position={"x": 10, "y": 10})
    assert scores() == sorted(scores())
    head.focus()
    page.keyboard.press("Enter")
    assert scores() == sorted(scores(), reverse=True)
    assert head.get_attribute("aria-sort") == "descending"


def test_filters_and_search_keep_the_rows_that_fit(site: Path, page: Any) -> None:
    visit(page, site / "trials" / "hostile.html")
    status = page.locator("[role=status]")
    assert status.text_content() == "144 rows"
    page.locator("select[name=candidate]").select_option("mine")
    assert status.text_content() == "48 of 144 rows"
    assert set(column(page, "c1")) == {"mine"}
    page.locator("select[name=status]").select_option("cheat")
    assert status.text_content() == "1 of 144 rows"
    page.locator("select[name=status]").select_option(index=0)
    page.locator("select[name=candidate]").select_option(index=0)
    page.locator("input[type=search]").fill("<script>")
    assert "of 144 rows" in (status.text_content() or "")
    page.locator("input[type=search]").fill("no such words")
    assert status.text_content() == "0 of 144 rows"
    assert page.locator(".tabulator-placeholder").inner_text() == "Nothing fits these filters."


def test_the_leaderboard_shows_the_scores_of_the_graphs_that_are_chosen(
    site: Path, page: Any
) -> None:
    visit(page, site / "index.html")
    boards = (site / "index.js").read_text(encoding="utf-8")
    [board] = json.loads(boards.partition(",")[2].strip().removesuffix(");"))

    def shown() -> list[str]:
        return page.eval_on_selector_all(
            ".board:not([hidden]) .speedup .value", "all => all.map((each) => each.textContent)"
        )

    def expected(choice: list[int]) -> list[str]:
        [scores] = [cells for indices, cells in board["choices"] if indices == choice]
        values = sorted((cells[0][0] for cells in scores if cells), reverse=True)
        return [f"{value:.3f}" for value in values]

    assert shown() == expected([-1, -1, -1])
    page.locator("select[name=dtype]").select_option("bfloat16")
    assert (
        shown()
        == expected([board["names"]["dtype"].index("bfloat16"), -1, -1])
        != expected([-1, -1, -1])
    )
    page.locator("select[name=kind]").select_option("passes")
    assert len(shown()) == 1
    page.locator("button[type=reset]").click()
    until(page, "document.querySelectorAll('.board:not([hidden]) .speedup .value').length === 3")
    assert shown() == expected([-1, -1, -1])


def test_a_long_message_is_fetched_when_it_is_asked_for(site: Path, page: Any) -> None:
    [first] = site.glob("attempts/0000-*.html")
    visit(page, first)
    assert "the very last" not in page.locator("main").inner_text()
    button = page.locator("[data-chunk]").first
    button.click()
    until(page, "!document.querySelector('[data-chunk]')")
    texts = page.eval_on_selector_all("pre.text", "all => all.map((each) => each.textContent)")
    assert any(text.endswith("the very last") for text in texts)
    assert page.complaints == []


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that does not tell what it serves."""

    def log_message(self, *_: object) -> None:
        pass


def test_a_web_server_serves_it_as_well(site: Path, page: Any) -> None:
    handler = partial(Quiet, directory=str(site))
    with serving(handler) as address:
        page.goto(f"{address}/trials/hostile.html")
        until(page, "document.querySelectorAll('.tabulator-row').length > 10")
        page.locator("nav a").first.click()
        until(page, "document.querySelectorAll('.tabulator-row').length === 3")
        assert page.complaints == []
        assert {url.split("/")[2] for url in page.requests} == {address.split("/")[2]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_a_phone_or_hides_in_the_dark(
    site: Path, browser: Any, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for path in sorted(site.rglob("*.html")):
        visit(page, path)
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        body, ground = page.evaluate(
            "(() => { const s = getComputedStyle(document.body); return [s.color,"
            " s.backgroundColor]; })()"
        )
        is_dark = sum(map(int, ground[4:-1].split(","))) < 200
        assert is_dark == (scheme == "dark") and body != ground, path
    context.close()


def test_ten_thousand_trials_are_quick(tmp_path: Path, page: Any) -> None:
    """The trials of PassBench v0, some repeated under another name, for the load alone."""
    shutil.copytree(ROOT / "baselines" / "passbench-v0", tmp_path / "run")
    file = tmp_path / "run" / "trials.jsonl"
    unpack_lines(file)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    again = [line.replace('"candidate":"', '"candidate":"again ', 1) for line in lines]
    file.write_text("".join([*lines, *again[: 10_000 - len(lines)]]), encoding="utf-8")
    parts = read_parts([tmp_path / "run"], None, [], None)
    [board] = parts.boards
    out = tmp_path / "out"
    out.mkdir()
    written = SiteFolder(out, "Many", [("Leaderboard", "index.html")])
    written.write_assets()
    scores = board_scores(board)
    write_index(written, parts.boards, [scores])
    write_board(written, board, scores)
    write_trials(written, board)
    for name in ("index", f"boards/{board.stem}", f"trials/{board.stem}"):
        page.requests.clear()
        start = time.monotonic()
        visit(page, out / f"{name}.html")
        seconds = time.monotonic() - start
        loaded = sum(Path(url.removeprefix("file://")).stat().st_size for url in page.requests)
        print(f"{name}: {seconds:.2f} s, {loaded / 2**20:.2f} MiB")
        assert loaded <= MOST_BYTES, name
        assert seconds <= MOST_SECONDS, name
    assert page.locator("[role=status]").text_content() == "10\u202f000 rows"
    start = time.monotonic()
    page.locator("select[name=candidate]").select_option("inductor")
    until(page, "document.querySelector('[role=status]').textContent.includes(' of ')")
    print(f"filtered in {time.monotonic() - start:.2f} s")
    assert set(column(page, "c1")) == {"inductor"}
    assert page.complaints == []


def test_the_baselines_of_the_repository_make_a_site(tmp_path: Path, page: Any) -> None:
    run = ROOT / "baselines" / "demo"
    build_site(read_parts([run], None, [], None), tmp_path / "out", "Baselines")
    visit(page, tmp_path / "out" / "index.html")
    assert "AMD EPYC" in page.locator(".machine").first.inner_text()
    assert page.complaints == []
