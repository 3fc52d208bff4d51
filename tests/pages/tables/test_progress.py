"""Progress where there is no terminal."""

import time

import pytest

from passnet.core.terminal.progress import progress


def test_long_work_prints_a_line_now_and_then_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = ""
    with progress("judging demo", 3, every_s=0.01) as step:
        step("gelu-0")
        deadline = time.monotonic() + 10
        while "1 of 3" not in text and time.monotonic() < deadline:
            text += capfd.readouterr().err
    assert "judging demo: 1 of 3 after 0 s, the last gelu-0\n" in text


def test_short_work_prints_nothing_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with progress("judging demo", 1) as step:
        step()
    assert capfd.readouterr().err == ""


def test_a_line_of_progress_is_at_most_100_wide(capfd: pytest.CaptureFixture[str]) -> None:
    text = ""
    with progress("judging demo", 3, every_s=0.01) as step:
        step("window_reverse_residual-" * 5)
        deadline = time.monotonic() + 10
        while "1 of 3" not in text and time.monotonic() < deadline:
            text += capfd.readouterr().err
    assert {len(line) for line in text.splitlines() if "1 of 3" in line} == {100}


def test_news_of_an_item_under_way_counts_no_item(capfd: pytest.CaptureFixture[str]) -> None:
    text = ""
    with progress("writing passes", 1, every_s=0.01) as step:
        step("3 turns, 4,512 tokens, $0.02", advance=0)
        deadline = time.monotonic() + 10
        while "turns" not in text and time.monotonic() < deadline:
            text += capfd.readouterr().err
    assert "writing passes: 0 of 1 after 0 s, 3 turns, 4,512 tokens, $0.02\n" in text


def test_no_color_means_lines_in_place_of_a_bar_on_a_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    for shows_bar in (True, False):
        with progress("judging demo", 1) as step:
            step()
        assert ("\x1b" in capfd.readouterr().err) == shows_bar
        monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize("name", ["a[bold]b", "a[conceal]b", "a[/]b"])
def test_a_title_is_no_markup(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "150"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    with progress(f"judging {name}", 1) as step:
        step("x")
    assert name in capfd.readouterr().err
