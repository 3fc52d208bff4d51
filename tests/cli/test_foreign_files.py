"""Files of strangers on the command line: a sentence and exit code 2, never a traceback."""

import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from passnet.cli import main
from passnet.judge.desk.candidates import distinct, parse_candidate
from passnet.judge.suite.suite import SUITES, load_suite, row_of_graph
from tests.bench.runs import write_small_suite
from tests.judge.folders import GOOD, write_passes

SVG = "{http://www.w3.org/2000/svg}"
ROW = {"task": "a", "graph": "a0", "status": "ok", "smallest_t": -5, "speedup": 2.0}


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


@pytest.mark.parametrize(("low", "high"), [(0, 3), (-1, 3), (3, 2)])
def test_an_interval_that_no_speedup_has_is_named(low: float, high: float, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**ROW, "speedup_low": low, "speedup_high": high}) + "\n")
    done = run("bench", "score", path)
    assert (done.exit_code, done.stderr.startswith("passnet: trial a/a0: the interval")) == (
        2,
        True,
    )


STUDY = {
    "title": "t",
    "tables": [{"title": "T", "heads": ["a", "b"], "rows": [["1", "2"]], "note": ""}],
}


def study(folder: Path, svg: str | None = None, **fields: object) -> Path:
    """Write a study of a stranger."""
    figures = [] if svg is None else [{"file": "f.svg", "caption": ""}]
    (folder / "study.json").write_text(json.dumps({**STUDY, "figures": figures, **fields}))
    if svg is not None:
        (folder / "f.svg").write_text(svg)
    return folder


def test_a_column_of_least_worth_that_is_none_is_named(tmp_path: Path) -> None:
    tables = [{"title": "T", "heads": ["a"], "rows": [], "least": ["b"]}]
    done = run("report", study(tmp_path, tables=tables), "--out", tmp_path / "s")
    assert done.exit_code == 2 and "is none of the table 'T'" in done.stderr


def test_a_row_longer_than_its_head_is_named(tmp_path: Path) -> None:
    tables = [{"title": "T", "heads": ["a"], "rows": [["1", "2"]], "note": ""}]
    done = run("report", study(tmp_path, tables=tables), "--out", tmp_path / "s")
    assert done.exit_code == 2 and "row of the table 'T' does not fit its head" in done.stderr


def svg(inner: str = "", attributes: str = "") -> str:
    """Return a picture."""
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"<svg {spaces} {attributes}>{inner}</svg>"


ACTIVE = {
    "script": "<script>EVIL</script>",
    "link": '<a xlink:href="javascript:EVIL"><path d=""/></a>',
    "animated link": '<use href="#a"><set attributeName="href" to="javascript:EVIL"/></use>',
    "page": '<foreignObject><p xmlns="http://www.w3.org/1999/xhtml">EVIL</p></foreignObject>',
    "script of a page": '<g><script xmlns="http://www.w3.org/1999/xhtml">EVIL</script></g>',
    "other picture": '<image href="https://EVIL/a.png"/>',
    "picture within": '<image href="data:image/svg+xml;base64,EVIL"/>',
    "style": "<style>@import 'https://EVIL/a.css'</style>",
    "style of one": '<path style="fill: url( https://EVIL )"/>',
    "escaped style": r"<style>@\69mport 'https://EVIL/a.css'</style>",
    "handler": '<path onclick="EVIL"/>',
}


@pytest.mark.parametrize("text", ACTIVE.values(), ids=ACTIVE)
def test_a_figure_of_a_study_is_an_image_in_which_nothing_runs(text: str, tmp_path: Path) -> None:
    picture = svg(text + '<rect width="9"/>', 'onload="EVIL" width="90" viewBox="0 0 90 40"')
    done = run("report", study(tmp_path, f'<?xml-stylesheet href="EVIL"?>{picture}'), "--out",
               tmp_path / "site")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    [figure] = (tmp_path / "site").rglob("*-0.svg")
    root = ElementTree.fromstring(figure.read_text())
    assert [element.tag for element in root.iter()] == [f"{SVG}svg", f"{SVG}image"]
    assert root.attrib == {"width": "90", "height": "40"}
    assert {*root[0].attrib} == {"width", "height", "href"}
    assert root[0].attrib["href"].startswith("data:image/svg+xml;base64,")


NO_FIGURES = {"no XML": "<svg><script>", "no SVG": "<html/>"}


@pytest.mark.parametrize("text", NO_FIGURES.values(), ids=NO_FIGURES)
def test_what_is_no_figure_is_named(text: str, tmp_path: Path) -> None:
    done = run("report", study(tmp_path, text), "--out", tmp_path / "site")
    assert done.exit_code == 2 and "f.svg: cannot be shown as a figure, it" in done.stderr


def test_a_graph_folder_whose_name_is_not_utf_8_is_left_out(tmp_path: Path) -> None:
    for name in (b"good", b"bad\xff"):
        folder = tmp_path / os.fsdecode(name)
        folder.mkdir()
        (folder / "model.py").write_text(
            "class M:\n    def forward(self, a):\n        b = a + 1\n        return (b,)\n"
        )
        (folder / "weight_meta.py").write_text(
            "class A:\n    name = 'a'\n    shape = [2]\n    dtype = 'torch.float32'\n"
        )
        (folder / "graph_net.json").write_text("{}")
    suite = load_suite(str(tmp_path))
    assert [graph.name for graph in suite.graphs] == ["good"]
    assert "its name is not UTF-8" in suite.notes[0] and suite.notes[0].isprintable()
    assert run("suite", "show", tmp_path).exit_code == 0


def test_a_pass_folder_with_a_name_that_is_not_utf_8_fails_its_task_alone(tmp_path: Path) -> None:
    suite = load_suite(str(write_small_suite(tmp_path / "small.parquet", 1)))
    for task in suite.tasks:
        write_passes(tmp_path / "all" / task.name, GOOD)
    (tmp_path / "all" / "mul_relu" / os.fsdecode(b"x\xff")).touch()
    entry = parse_candidate(str(tmp_path / "all"), suite.tasks)
    assert entry.broken == ("mul_relu",) and entry.notes[0].isprintable()


def test_one_folder_by_three_names_counts_once(tmp_path: Path, monkeypatch) -> None:
    suite = load_suite(str(write_small_suite(tmp_path / "small.parquet", 1)))
    write_passes(tmp_path / "good", GOOD)
    (tmp_path / "link").symlink_to("good")
    monkeypatch.chdir(tmp_path)
    words = ["good", "./good", "link", "good@direct", "eager", "eager@direct"]
    kept, notes = distinct([parse_candidate(word, suite.tasks) for word in words])
    assert [entry.name for entry in kept] == ["good", "good@direct", "eager", "eager@direct"]
    assert notes == [
        f"candidate {word} is good by another name, judged once" for word in words[1:3]
    ]


def test_escape_sequences_reach_no_terminal(tmp_path: Path) -> None:
    suite = load_suite(str(write_small_suite(tmp_path / "small.parquet", 1)))
    rows = map(row_of_graph, suite.graphs)
    path = tmp_path / "\x1b[31msuite.parquet"
    SUITES.write(path, [replace(row, task=f"\x1b[2J\x9b{row.task}") for row in rows])
    outputs = [
        run("suite", "show", path),
        run("suite", "show", path, "--tasks", "\x1b[1m"),
        run("bench", "score", tmp_path / "\x1b[31mmissing"),
        run("pass", "check", tmp_path / "\x1b[31mmissing", "--suite", path),
        run("graph", "check", tmp_path / "\x1b[31mmissing"),
    ]
    for done in outputs:
        text = done.stdout + done.stderr
        assert text and "\x1b" not in text and "\x9b" not in text


@pytest.mark.parametrize("target", ["/dev/null", "link"])
def test_a_device_stays_a_device(target: str, tmp_path: Path) -> None:
    path = Path("/dev/null")
    if target == "link":
        path = tmp_path / "link.parquet"
        path.symlink_to("/dev/null")
    else:
        path = tmp_path / "device.parquet"
        os.mkfifo(path)
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    done = run("suite", "make", suite, "--out", path)
    assert done.exit_code == 2 and not path.is_file()


READERS = {
    "report": ("report", "{}", "--out", "site"),
    "bench show": ("bench", "show", "{}"),
    "train evaluate": ("train", "evaluate", "--suite", "demo-small", "{}", "--out", "out"),
    "train answer": ("train", "answer", "{}", "--from", "training/llm", "--out", "out"),
    "train answer --from": ("train", "answer", "data", "--from", "{}", "--out", "out"),
    "train judge": ("train", "judge", "{}", "--out", "out"),
    "train data": ("train", "data", "{}", "--out", "out"),
    "pass check": ("pass", "check", "{}"),
    "dataset stats": ("dataset", "stats", "{}"),
    "dataset build": ("dataset", "build", "{}", "--out", "out"),
    "dataset merge": ("dataset", "merge", "{}", "--out", "out"),
    "leaderboard add": ("leaderboard", "add", "{}", "--name", "a", "--sender", "b"),
    "suite import": ("suite", "import", "kernelbench", "{}", "--out", "a.parquet"),
}
"""Commands that read a folder."""


@pytest.mark.parametrize("name", READERS)
def test_a_folder_that_does_not_exist_is_said_not_to(name: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    done = run(*(word.format(missing) for word in READERS[name]))
    assert done.exit_code == 2 and f"passnet: {missing}: no such f" in done.stderr


@pytest.mark.parametrize("name", ["train answer", "train answer --from", "train judge"])
def test_a_folder_of_another_kind_is_told_which_one_to_give(name: str, tmp_path: Path) -> None:
    done = run(*(word.format(tmp_path) for word in READERS[name]))
    kind = "sft" if "--from" in name else "data"
    assert done.exit_code == 2 and f"give the folder of `passnet train {kind}`" in done.stderr
