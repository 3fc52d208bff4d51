"""Sites as files: what they hold, that all of it is there, and that none of it runs."""

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Message, ToolCall
from passnet.bench.environment import Gpu
from passnet.bench.scores import read_rows, score_rows
from passnet.core.records.serialise import LineWriter, read_json, write_json
from passnet.errors import InputError
from passnet.judge.timing.roofline import Roofline
from passnet.judge.verdict.findings import CATALOGUE
from passnet.train.rewards.samples import SAMPLES_FILE, Sample
from passnet_site.pages.board_pages import line_table
from passnet_site.pages.boards import board_scores, boards_of
from passnet_site.pages.build import SITE_FILE, SiteRecord, build_site, read_parts
from passnet_site.pages.measured import KnownSuites, MeasuredRun, read_run, read_sources
from tests.agent.attempts import MACHINE, attempt
from tests.pages.site.runs import (
    HOSTILE,
    hostile_suite,
    write_hostile_passes,
    write_hostile_study,
    write_run,
)

SUITE = hostile_suite()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with all kinds of pages but that of a dataset."""
    folder = tmp_path_factory.mktemp("site")
    run = write_run(folder / "run", SUITE, write_hostile_passes(folder / "mine"))
    study = write_hostile_study(folder / "study")
    parts = read_parts([run, study], None, [SUITE], None)
    build_site(parts, folder / "out", f"Title {HOSTILE}")
    return folder / "out"


class Page(HTMLParser):
    """The elements of a page, and what it links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    @property
    def targets(self) -> list[str]:
        return [
            value
            for _, attributes in self.tags
            for name, value in attributes.items()
            if name in ("href", "src") and value
        ]


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def given(site: Path, page: str, name: str) -> dict:
    text = (site / page).with_suffix(".js").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.startswith(f'PASSNET.put("{name}",')]
    return json.loads(line.partition(",")[2].removesuffix(");"))


def test_all_that_a_page_names_is_there_and_its_own(site: Path) -> None:
    assert len(pages(site)) >= 9
    for path in pages(site):
        for target in Page(path).targets:
            assert not re.match(r"[a-z]+:|//", target), (path, target)
            if not target.startswith("#"):
                assert (path.parent / target.partition("#")[0]).is_file(), (path, target)


def test_scripts_of_pages_are_files_and_a_policy_forbids_others(site: Path) -> None:
    for path in pages(site):
        page = Page(path)
        assert all("src" in attributes for tag, attributes in page.tags if tag == "script")
        assert not [name for _, attributes in page.tags for name in attributes if name[:2] == "on"]
        assert not [1 for _, attributes in page.tags if "style" in attributes]
        [policy] = [a["content"] for _, a in page.tags if "http-equiv" in a]
        assert policy and "default-src 'none'" in policy and "unsafe" not in policy


def test_hostile_texts_are_texts_and_can_be_seen(site: Path) -> None:
    allowed = {"script", "img"}
    for path in pages(site):
        text = path.read_text(encoding="utf-8")
        assert not set(text) & {"\u202e", "\u2066", "\x1b", "\x07"}, path
        images = [a["src"] for tag, a in Page(path).tags if tag in allowed and a.get("src") == "x"]
        assert not images and "<script>window" not in text, path
    title = (site / "index.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in title and r"\u202eevil" in title
    for path in site.rglob("*.js"):
        if "assets" not in path.parts:
            assert not set(path.read_text(encoding="utf-8")) & {"<", "\u202e", "\x1b"}, path


def test_the_leaderboard_has_the_scores_of_the_records(site: Path) -> None:
    [board] = given(site, "index.html", "boards")
    [whole] = [scores for choice, scores in board["choices"] if choice == [-1, -1, -1]]
    expected = {s.candidate: s for s in score_rows(read_rows(site.parent / "run"))}
    assert len(board["lines"]) == len(whole) == 3
    for line, cells in zip(board["lines"], whole, strict=True):
        score = expected[HOSTILE_NAME if line["name"].startswith("null") else line["name"]]
        interval = score.intervals["both"]
        assert cells[0] == pytest.approx([score.suite.score, interval.low, interval.high], rel=1e-4)
    assert board["names"]["dtype"] == ["bfloat16", "float32"]


def test_a_board_shows_passes_in_nets(site: Path) -> None:
    [board] = given(site, "index.html", "boards")
    assert [line["nets"] for line in board["lines"]] == [None, None, "1.030, 1 of 2 nets"]
    [page] = [path for path in site.glob("boards/*.html") if "trials" not in path.name]
    columns = given(site, f"boards/{page.name}", "nets")["columns"]
    speedups = next(column for column in columns if column["title"].startswith("in the net"))
    assert speedups["values"] == [[1.03, 1.01, 1.05], None]


HOSTILE_NAME = f"null {HOSTILE}"


def test_scores_of_a_choice_are_those_of_its_graphs_alone(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", SUITE), KnownSuites((SUITE,)))
    [board] = boards_of([run], [SUITE])
    scores = board_scores(board)
    graphs = {g.name for g in SUITE.graphs if g.graph.tensors[0].dtype == "bfloat16"}
    rows = [row for row in read_rows(tmp_path / "run") if row.graph in graphs]
    for expected in score_rows(rows):
        found = scores.scores["bfloat16", None, None][expected.candidate]
        assert found is not None and found.suite.score == expected.suite.score


def test_a_board_has_the_score_by_share_where_shares_are_known(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", SUITE), KnownSuites((SUITE,)))
    [board] = boards_of([run], [SUITE])
    whole = board_scores(board).whole
    without, known = (line_table(board, whole, shares) for shares in ({}, {"add_relu": 0.2}))
    columns = {column["title"]: column["values"] for column in known["columns"]}
    tasks = [whole[line.name].suite.tasks["add_relu"] for line in board.lines]  # type: ignore[union-attr]
    assert columns.pop("AS by share") == pytest.approx(tasks, rel=1e-4)
    assert columns == {column["title"]: column["values"] for column in without["columns"]}


def test_a_board_has_the_interval_of_the_score_against_the_hardware(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", SUITE), KnownSuites((SUITE,)))
    limit = Roofline(3_000, 1_000, 0, 0, 4e9, 4e9, 0.0, 0.0)  # T_sol is 1 µs
    limited = replace(run, trials=[replace(trial, roofline=limit) for trial in run.trials])
    [board] = boards_of([limited], [SUITE])
    whole = board_scores(board).whole
    columns = {c["title"]: c["values"] for c in line_table(board, whole, {})["columns"]}
    for shown, line in zip(columns["S interval"], board.lines, strict=True):
        both = whole[line.name].sol.intervals["both"]  # type: ignore[union-attr]
        assert 0 < both.low < both.high and shown == f"{both.low:.3f} – {both.high:.3f}"


def test_other_hardware_threads_and_versions_are_other_boards(tmp_path: Path) -> None:
    machines = (
        MACHINE,
        replace(MACHINE, cpu="another"),
        replace(MACHINE, num_cpus=64),
        replace(MACHINE, torch="2.14"),
        replace(MACHINE, gpu=Gpu("H100")),
    )
    known = KnownSuites((SUITE,))
    runs = [
        read_run(write_run(tmp_path / str(n), SUITE, machine=machine), known)
        for n, machine in enumerate((*machines, MACHINE))
    ]
    boards = boards_of(runs, [SUITE] * len(runs))
    assert len(boards) == len(machines) and len({board.stem for board in boards}) == len(boards)
    [shared] = [board for board in boards if len(board.lines) == 4]
    assert len({line.name for line in shared.lines}) == 4


def test_no_page_of_a_board_is_that_of_another(tmp_path: Path) -> None:
    suites = [hostile_suite(1, "demo"), hostile_suite(2, "demo-trials")]
    runs = [write_run(tmp_path / suite.name, suite) for suite in suites]
    build_site(read_parts(runs, None, suites, None), tmp_path / "out", "Two")
    for folder in ("boards", "trials"):
        names = {path.name for path in (tmp_path / "out" / folder).glob("*.html")}
        assert names == {"demo.html", "demo-trials.html"}
    text = (tmp_path / "out" / "boards" / "demo-trials.html").read_text(encoding="utf-8")
    assert "<h2>How it was measured</h2>" in text


def test_a_run_that_was_stopped_is_told_from_whole_ones(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", SUITE), KnownSuites((SUITE,)))
    stopped = replace(run, name="stopped", trials=run.trials[:3])
    [board] = boards_of([run, stopped], [SUITE, SUITE])
    assert [line.is_part for line in board.lines] == [False, False, True]
    names = line_table(board, board_scores(board).whole, {})["columns"][0]["values"]
    tags = [tags for _, _, tags in names]
    assert "3 of 8 graphs" in tags[2] and not any("graphs" in tag for tag in tags[0])


def test_settings_that_judge_otherwise_are_another_board(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", SUITE), KnownSuites((SUITE,)))
    own = run.info.settings.judge

    def with_judge(**changes: object) -> MeasuredRun:
        judge = replace(own, **changes)
        info = replace(run.info, settings=replace(run.info.settings, judge=judge))
        return replace(run, info=info)

    assert own.timing is not None
    same = [with_judge(self_tolerance=0.2, seed=3), with_judge(call_timeout_s=9.0)]
    other = [with_judge(input_seed=3), with_judge(timing=replace(own.timing, seconds=0.01))]
    runs = [run, *same, *other]
    boards = boards_of(runs, [SUITE] * len(runs))
    assert sorted(len(board.lines) for board in boards) == [2, 2, 6]


def test_a_task_has_its_trials_findings_and_sources(site: Path) -> None:
    [path] = site.glob("tasks/*/add_relu.html")
    text = path.read_text(encoding="utf-8")
    assert "constant_output" in text and CATALOGUE["constant_output"].meaning in text
    assert "replacement_args" in text and 'class="k"' in text
    trials = given(site, str(path.relative_to(site)), "trials-0")
    assert len(trials["columns"][0]["values"]) == 3 * 4
    assert (path.with_suffix(".svg")).read_text(encoding="utf-8").startswith("<svg")


def test_changed_sources_are_not_shown_as_those_that_were_judged(tmp_path: Path) -> None:
    passes = write_hostile_passes(tmp_path / "mine")
    run = write_run(tmp_path / "run", SUITE, passes)
    assert read_run(run, KnownSuites((SUITE,))).sources
    (passes / "Fuse.py").write_text((passes / "Fuse.py").read_text() + "# more\n")
    assert not read_run(run, KnownSuites((SUITE,))).sources


def test_a_site_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    parts = read_parts([write_run(tmp_path / "run", SUITE)], None, [SUITE], None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    with pytest.raises(InputError, match="is there already, and no site"):
        build_site(parts, tmp_path / "other", "A")
    first = build_site(parts, tmp_path / "out", "A")
    study = read_parts([write_hostile_study(tmp_path / "study")], None, [], None)
    build_site(study, tmp_path / "out", "A")
    assert (tmp_path / "out" / "studies").is_dir() and not (tmp_path / "out" / "tasks").exists()
    assert build_site(parts, tmp_path / "out", "A") == first
    assert not (tmp_path / "out" / "studies").exists()
    assert sum(path.is_file() for path in (tmp_path / "out").rglob("*")) == first.num_files


def test_files_that_a_site_did_not_write_are_kept_by_the_next_one(tmp_path: Path) -> None:
    parts = read_parts([write_hostile_study(tmp_path / "study")], None, [], None)
    out = tmp_path / "out"
    build_site(parts, out, "A")
    mine = [out / ".git" / "HEAD", out / "CNAME", out / "studies" / "notes" / "a.txt"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.name)
    (out / "latest").symlink_to("studies")
    for _ in range(2):
        build_site(parts, out, "B")
    assert [path.read_text() for path in mine] == ["HEAD", "CNAME", "a.txt"]
    assert (out / "latest").is_symlink()
    site = read_json(out / SITE_FILE, SiteRecord)
    write_json(out / SITE_FILE, replace(site, files=site.files[1:]))
    with pytest.raises(InputError, match="remove it, or choose another --out"):
        build_site(parts, out, "C")
    assert "B" in (out / "index.html").read_text() and mine[0].exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "study"]


def test_a_site_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path: Path) -> None:
    parts = read_parts([write_hostile_study(tmp_path / "study")], None, [], None)
    out, old = tmp_path / "out", tmp_path / ".out.passnet-replaced"
    build_site(parts, out, "A")
    out.replace(old)  # as a kill between the two renames leaves it
    (old / "CNAME").write_text("mine")
    (tmp_path / "link").symlink_to("out")
    build_site(parts, tmp_path / "link", "B")
    assert (tmp_path / "link").is_symlink() and (out / "CNAME").read_text() == "mine"
    assert "B" in (out / "index.html").read_text() and not old.exists()


def test_large_files_of_a_pass_folder_leave_room_for_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "passes"
    shutil.copytree("examples/passes/rms_norm", folder)
    (folder / "A_long.txt").write_text("x" * 500_000)
    sources = read_sources(folder)
    assert all(sources[path.name] == path.read_text() for path in folder.glob("*.py"))
    assert sources["A_long.txt"].endswith("\n… 450,000 more bytes are not shown")
    for number in range(9):
        (folder / f"A_{number}.txt").write_text("x" * 60_000)
    assert {path.name for path in folder.iterdir()} == {*read_sources(folder)}
    assert all("not shown" in text for text in read_sources(folder).values())


def test_the_rest_of_a_long_message_goes_where_its_beginning_is(tmp_path: Path) -> None:
    call = ToolCall("1", "create", "x" * 13_000)
    text = "word " * 6000 + "the very last"
    message = Message("assistant", text, tool_calls=(call,), reasoning="hm")
    (tmp_path / "attempts").mkdir()
    with LineWriter(tmp_path / "attempts" / ATTEMPTS_FILE) as writer:
        writer.write(attempt(messages=(message,), evaluations=(), best=None))
    parts = read_parts([tmp_path / "attempts"], None, [], None)
    build_site(parts, tmp_path / "out", "A")
    [path] = (tmp_path / "out" / "attempts").glob("0000-*.html")
    tags = Page(path).tags
    [chunk] = [own["data-chunk"] for tag, own in tags if tag == "button" and "data-chunk" in own]
    assert f'data-cut="{chunk}" tabindex="0">word word' in path.read_text()
    assert (path.parent / f"{chunk}.js").exists()
    assert "… 1,000 more characters are not shown" in path.read_text()
    assert any("site.js" in (own.get("src") or "") for tag, own in tags if tag == "script")


def test_what_is_no_run_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run, no run of an author, no training and no study"):
        read_parts([tmp_path], None, [], None)
    with pytest.raises(InputError, match="nothing to show"):
        read_parts([], None, [], None)


def test_a_training_is_shown_and_nothing_is_written_into_its_folder(tmp_path: Path) -> None:
    sample = Sample(0, 0, "a", 1.0, ("ok",), True, speedup_low=1.5, num_tokens=50)
    with LineWriter(tmp_path / "run" / SAMPLES_FILE) as writer:
        writer.write(sample)
    parts = read_parts([tmp_path / "run"], None, [], None)
    build_site(parts, tmp_path / "out", "A")
    assert [path.name for path in (tmp_path / "run").iterdir()] == [SAMPLES_FILE]
    assert (tmp_path / "out" / "studies" / "00-run-0.svg").is_file()
