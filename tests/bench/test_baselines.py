"""The committed baselines: whole, of the suite that is shipped, and what the page says of them."""

import json
import re
from collections import Counter

import pytest

from passnet.bench.groups import group_rows
from passnet.bench.run_record import (
    RUN_FILE,
    SCORES_FILE,
    TRIALS_FILE,
    BenchRunInfo,
    run_folder,
    suite_of_run,
)
from passnet.bench.scores import CandidateScore, as_json, read_rows, score_rows
from passnet.core.records.serialise import open_lines, read_json
from passnet.judge.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY
from passnet.judge.suite.suite import load_suite
from recipes.baselines import rows_with_choice, table_rows
from tests.conftest import ROOT

RUN = ROOT / "baselines" / "passbench-v0"
CANDIDATES = ["eager", "null", "inductor"]
JUDGED = [
    "passbench-v1-small",
    "passbench-v1-single-small",
    "passbench-v1-classical-small",
    "passbench-v1-held-out",
    "passbench-v1-single-held-out",
    "passbench-v1-classical-held-out",
]


@pytest.fixture(scope="module")
def scores() -> list[CandidateScore]:
    return score_rows(read_rows(RUN))


def test_each_graph_of_the_shipped_suite_has_a_trial_of_each_baseline() -> None:
    suite = load_suite("passbench-v0")
    assert read_json(RUN / RUN_FILE, BenchRunInfo).suite_hash == suite.content_hash
    graphs = [item.name for task in suite.tasks for item in task.graphs]
    wanted = {(name, candidate) for name in graphs for candidate in CANDIDATES}
    trials = run_folder(RUN).records().values()
    assert {(item.graph, item.candidate) for item in trials} == wanted
    assert len(open_lines(RUN / TRIALS_FILE).readlines()) == len(wanted)


def test_the_scores_are_what_the_records_give(scores: list[CandidateScore]) -> None:
    recorded = json.loads((RUN / SCORES_FILE).read_text(encoding="utf-8"))
    made = as_json(scores, SEVERE_PENALTY, SLOWDOWN_PENALTY)
    assert json.loads(json.dumps(made)) == recorded


def test_the_page_says_what_the_records_give(scores: list[CandidateScore]) -> None:
    page = (ROOT / "baselines/passbench-v0/README.md").read_text(encoding="utf-8")
    by_time = group_rows(read_rows(RUN), "time")
    for item in scores:
        [line] = re.findall(rf"^\| `{item.candidate}`.*$", page, re.MULTILINE)
        columns = item.suite.columns
        low, high = item.intervals["both"].low, item.intervals["both"].high
        for text in (
            f"{item.suite.score:.3f}",
            f"{low:.3f} – {high:.3f}",
            f"{item.suite.score_float64:.3f}",
            f"{100 * columns.subgraph_correct:.1f}",
            f"{100 * columns.fast_1:.1f}",
            f"{columns.geomean_speedup:.3f}",
        ):
            assert f" {text} " in line, (text, line)
        groups = [each for each in by_time if each.candidate == item.candidate]
        slower, faster = (
            sum(getattr(each, share) * each.num_trials for each in groups) / item.num_trials
            for share in ("slower", "faster")
        )
        assert line.endswith(f" {100 * slower:.1f} | {100 * faster:.1f} |")


@pytest.mark.parametrize("name", JUDGED)
def test_the_tables_of_a_judged_suite_say_what_the_records_give(name: str) -> None:
    folder = ROOT / "baselines" / name
    suite = suite_of_run(folder)
    info = read_json(folder / RUN_FILE, BenchRunInfo)
    assert suite is not None and info.suite_hash == suite.content_hash
    candidates = [item.name for item in info.candidates]
    assert len(candidates) == len(set(candidates))
    assert not any((item.root or "").startswith("/") for item in info.candidates)
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    rows = rows_with_choice(folder)
    made = list(table_rows(rows))
    assert all(line in lines for line in made)
    scores = {line.split(" | ")[0]: line.split(" | ")[1] for line in made}
    columns = ("`inductor`", "`inductor@guarded`", "`compiler@guarded`", "`search@guarded`")
    summary = [scores[f"| {column}"] for column in (*columns, "what a library would choose")]
    page = (ROOT / "docs" / "passbench.md").read_text(encoding="utf-8")
    assert f"baselines/{name}/README.md) | {' | '.join(summary)} |" in page
    num_graphs = sum(len(task.graphs) for task in suite.tasks)
    assert set(Counter(row.candidate for row in rows).values()) == {num_graphs}
