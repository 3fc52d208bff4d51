"""Scores from elsewhere: read from a file a task, refused in one sentence, shown as published."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passnet.bench.published import PublishedRun, import_published, read_published
from passnet.cli import main
from passnet.errors import InputError
from passnet_site.pages.build import build_site, read_parts


def write_scores(folder: Path, **scores: str) -> Path:
    for task, text in scores.items():
        (folder / task).mkdir(parents=True)
        (folder / task / "score.txt").write_text(text, encoding="utf-8")
    return folder


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, ["bench", *map(str, words)])


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    return write_scores(tmp_path / "scores", gelu="2.0\n", norm="0.125", relu="t = -5, AS: 4e0")


def test_a_folder_of_scores_becomes_a_run_with_their_geometric_mean(
    scores: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = invoke("import", scores, "--name", "some-llm", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "1.000" in done.stdout and "so there is no interval" in " ".join(done.stdout.split())
    published = read_published(out)
    assert (published.name, published.tasks) == ("some-llm", {"gelu": 2, "norm": 0.125, "relu": 4})
    assert published.score == pytest.approx(1.0)
    assert "some-llm" in invoke("show", out).stdout
    again = invoke("import", scores, "--name", "some-llm", "--out", out)
    assert again.exit_code == 2 and "already exists; remove it" in again.stderr


@pytest.mark.parametrize(
    "text", ["", "fast", "0", "-1.5", "nan", "inf", "1e999", "1.0 2.0", "AS 1 AS 2", "1.2.3", "1x"]
)
def test_a_file_without_one_score_is_refused_by_its_path(text: str, tmp_path: Path) -> None:
    folder = write_scores(tmp_path / "scores", gelu="1.0", norm=text)
    done = invoke("import", folder, "--name", "x", "--out", tmp_path / "out")
    path = folder / "norm" / "score.txt"
    assert done.exit_code == 2 and not (tmp_path / "out").exists()
    assert done.stderr == f"passnet: {path}: must hold the AS of its task, one number above 0\n"


def test_a_file_that_is_no_text_and_a_folder_without_scores_are_refused(tmp_path: Path) -> None:
    folder = write_scores(tmp_path / "scores", gelu="1.0")
    (folder / "gelu" / "score.txt").write_bytes(b"\xff\xfe1")
    with pytest.raises(InputError, match=r"score\.txt: not UTF-8 text"):
        import_published(folder, "x", tmp_path / "out")
    with pytest.raises(InputError, match=r"holds no TASK/score\.txt; give the folder of one"):
        import_published(folder / "gelu", "x", tmp_path / "out")
    with pytest.raises(InputError, match="no such folder"):
        import_published(tmp_path / "nowhere", "x", tmp_path / "out")


def test_published_scores_stand_apart_on_a_site_and_have_no_interval(
    scores: Path, tmp_path: Path
) -> None:
    runs = [tmp_path / name for name in ("first", "second")]
    import_published(scores, "first", runs[0])
    import_published(write_scores(tmp_path / "more", gelu="3.0"), "second", runs[1])
    parts = read_parts(runs, None, [], None)
    assert [type(run) for run in parts.published] == [PublishedRun] * 2 and not parts.boards
    build_site(parts, tmp_path / "site", "Scores")
    text = (tmp_path / "site" / "index.js").read_text(encoding="utf-8")
    tables = {
        line.removeprefix('PASSNET.put("').split('"')[0]: json.loads(line.split(",", 1)[1][:-2])
        for line in text.splitlines()
    }
    assert tables["boards"] == []
    columns = tables["published"]["columns"]
    assert columns[0]["values"][0] == ["first", "published.html", ["published"]]
    assert [column["kind"] for column in columns] == ["link", "number", "number"]
    assert columns[1]["values"] == [1.0, 3.0]
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "Nothing was measured here" in page and "no runs of candidates" not in page
    by_task = (tmp_path / "site" / "published.js").read_text(encoding="utf-8")
    assert '"second"' in by_task and "null" in by_task


def test_published_scores_are_no_entry_of_a_leaderboard(scores: Path, tmp_path: Path) -> None:
    import_published(scores, "x", tmp_path / "out")
    words = ["leaderboard", "add", str(tmp_path / "out"), "--name", "x", "--sender", "A"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.stderr
