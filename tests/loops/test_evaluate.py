from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.bench.environment import describe_environment
from passnet.core.jobs.run_folder import unchanged
from passnet.core.records.serialise import read_json, write_json
from passnet.errors import InputError, MeasureError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.judge.suite.suite import Suite, load_suite, make_suite, only_tasks
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet_loops.checkpoint import INFO_FILE, MODEL_FOLDER, TrainInfo
from passnet_loops.comparison import check_unseen, compare, seeds_together, systems_of
from passnet_loops.data.build import write_rows
from passnet_loops.data.examples import TrainingRow
from passnet_loops.data.row_judge import AnswerJudge
from passnet_loops.evaluate import (
    AnswerEvaluation,
    AnsweringSystem,
    AnswerRecord,
    EvaluationInfo,
    chosen_graphs,
    earlier_answers,
    evaluate_system,
    evaluation_run,
    teacher_answers,
)
from passnet_loops.language.prompt import Prompt, loops_prompt
from passnet_loops.settings import EvaluationPlan, SftSettings
from passnet_loops.summaries import log_scores, paired_gain, summary
from tests.judge.folders import small_graph


def record(system: str, number: int, is_correct: bool) -> AnswerRecord:
    verdict = "correct" if is_correct else "wrong"
    return AnswerRecord(system, f"task{number}", f"graph{number}", "", 1, verdict, "ok", None,
                        None, None, (), None, 0.0)  # fmt: skip


def test_systems_are_compared_task_by_task() -> None:
    good = [record("a", n, True) for n in range(40)]
    bad = [record("b", n, n % 2 == 0) for n in range(40)]
    gain = paired_gain(("a", good), ("b", bad))
    assert gain.gain == 0.5 and 0.3 < gain.low < 0.5 < gain.high < 0.7
    assert gain.score_ratio is None, "nothing was timed"
    same = paired_gain(("a", good), ("a", good))
    assert (same.gain, same.low, same.high) == (0, 0, 0)
    assert (gain.won, gain.lost) == (20, 0)
    assert summary("b", bad).correct == 0.5
    odd = [replace(each, flags=("odd",)) for each in bad[:2]]
    noted = summary("c", [*odd, replace(bad[3], findings=("cheat",))])
    assert (noted.findings, noted.flagged) == (1, 1), "what is wrong need not be read"


def test_seeds_of_a_system_count_with_their_mean(tmp_path: Path) -> None:
    one, two = ([record(f"s{n}", i, i % 4 < n) for i in range(40)] for n in (1, 3))
    both = summary("both", one + two)
    assert (both.num_graphs, both.num_tasks, both.correct) == (80, 40, 0.5)
    gain = paired_gain(("both", one + two), ("s1", one))
    assert gain.gain == pytest.approx(0.25) and 0 < gain.low < 0.25 < gain.high

    settings = SftSettings(num_copies=8)
    for name, stage, seed, copies in (
        ("sft-0", "sft", 0, 8), ("sft-1", "sft", 1, 8), ("sft-few", "sft", 0, 2),
        ("rl-0", "rl", 0, 8), ("rl-1", "rl", 1, 8),
    ):  # fmt: skip
        chosen = replace(settings, seed=seed, num_copies=copies, is_bfloat16=bool(seed))
        info = TrainInfo(1, stage, 2, 3, 3, ("hash",), {}, chosen, 1.0)
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / INFO_FILE, info)
    for name, seed, others in (("own-0", 0, ("a",)), ("own-1", 1, "bc"), ("more", 2, ("d",))):
        info = TrainInfo(
            1, "sft", 2, 9, 9 + seed, ("hash", *others), {}, replace(settings, seed=seed), 1.0, 6
        )
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / INFO_FILE, info)
    names = ("sft-0", "rl-1", "sft-few", "sft-1", "rl-0", "own-0", "more", "own-1")
    assert seeds_together([tmp_path / name for name in names]) == {
        "sft, 2 seeds": ["sft-0", "sft-1"],
        "rl, 2 seeds": ["rl-1", "rl-0"],
        "own, 2 seeds": ["own-0", "own-1"],
    }


def test_an_llm_kept_apart_from_a_version_may_be_asked_a_later_one_without_new_structures(
    tmp_path: Path,
) -> None:
    name = "passbench-v1-single-small"
    before, now = load_suite(f"{name}@1.0"), load_suite(name)
    assert before.content_hash != now.content_hash
    for known, suite in ((before, before), (before, now)):
        info = TrainInfo(
            1, "sft", 2, 3, 3, ("hash",), {name: known.content_hash}, SftSettings(), 1.0
        )
        write_json(tmp_path / INFO_FILE, info)
        check_unseen(tmp_path, suite)
    more = make_suite(name, [*now.graphs, *load_suite("demo-small").graphs])
    with pytest.raises(InputError, match=f"kept apart from {name}, not from this {name}"):
        check_unseen(tmp_path, more)


def checkpoint(folder: Path, weights: bytes, suite: Suite, seed: int = 0) -> Path:
    """The folder of an LLM of these weights, kept apart from a suite."""
    chosen = SftSettings(seed=seed)
    kept_apart = {suite.name: suite.content_hash}
    info = TrainInfo(1, "sft", 2, 3, 3, ("hash",), kept_apart, chosen, 1.0)
    (folder / MODEL_FOLDER).mkdir(parents=True, exist_ok=True)
    (folder / MODEL_FOLDER / "model.safetensors").write_bytes(weights)
    write_json(folder / INFO_FILE, info)
    return folder


def test_an_llm_trained_anew_in_the_same_folder_is_asked_again(tmp_path: Path) -> None:
    suite = only_tasks(load_suite("demo"), ("gelu_tanh",))
    graphs = chosen_graphs(suite, 1, None)
    info = EvaluationInfo("demo", "hash", tuple(g.name for g in graphs), False)
    [answer] = teacher_answers([loops_prompt(graph.graph) for graph in graphs])
    verdicts = []
    for weights, said in ((b"old", answer), (b"new", ["nonsense"]), (b"new", answer)):
        folder = checkpoint(tmp_path / "runs/sft", weights, suite)
        [system] = systems_of(suite, [folder], EvaluationPlan())
        system = replace(system, answer=lambda _, said=said: [said])
        [made] = evaluate_system(
            system, evaluation(tmp_path / "out", info, graphs, AcceptingDesk())
        )
        verdicts.append(made.verdict)
    assert verdicts == ["correct", "wrong", "wrong"], "the last is in the folder already"


def test_answers_of_other_weights_are_not_judged_again(tmp_path: Path) -> None:
    suite = only_tasks(load_suite("demo"), ("gelu_tanh",))
    folder = checkpoint(tmp_path / "sft", b"new", suite)
    info = EvaluationInfo(suite.name, suite.content_hash, (), False)
    run = evaluation_run(tmp_path / "before")
    with run.begin(info, False, unchanged("")), run.recorder(0) as put:
        put(replace(record("sft", 0, True), digest="of the old weights"))
    plan = EvaluationPlan(answered=(run.out,))
    with pytest.raises(InputError, match="before: holds no answer of these systems"):
        compare(suite, [folder], tmp_path / "out", plan)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "value", "goes_on"),
    [("load", 9.0, True), ("cpu", "another", False), ("torch", "2.0", False)],
)
def test_a_timed_evaluation_goes_on_only_on_its_kind_of_machine(
    name: str, value: Any, goes_on: bool, tmp_path: Path
) -> None:
    graphs = [g for g in chosen_graphs(load_suite("demo"), 1, None) if g.task == "gelu_tanh"]
    names, here = tuple(g.name for g in graphs), describe_environment()
    info = EvaluationInfo("demo", "hash", names, True, environment=here)
    there = replace(info, environment=replace(here, **{name: value}))
    system = AnsweringSystem("one", lambda _: [["nonsense"]])
    before = evaluate_system(system, evaluation(tmp_path, there, graphs, AcceptingDesk()))
    again = evaluation(tmp_path, info, graphs, AcceptingDesk())
    if goes_on:
        assert evaluate_system(system, again) == before
    else:
        with pytest.raises(InputError, match="timed on another machine"):
            evaluate_system(system, again)
    untimed = evaluation(tmp_path, replace(info, environment=None), graphs, AcceptingDesk())
    with pytest.raises(InputError, match="holds another evaluation"):
        evaluate_system(system, untimed)


def test_two_systems_of_one_name_are_refused(tmp_path: Path) -> None:
    suite = load_suite("demo")
    for names in (("a/sft", "b/sft"), ("a/teacher", "b/sft")):
        folders = [checkpoint(tmp_path / name, b"", suite) for name in names]
        with pytest.raises(InputError, match="2 systems are named"):
            systems_of(suite, folders, EvaluationPlan(has_teacher=True))


def test_two_groups_of_seeds_have_two_names(tmp_path: Path) -> None:
    folders = []
    for number in range(4):
        folder = checkpoint(tmp_path / f"sft-{number}", b"", load_suite("demo"), number)
        info = read_json(folder / INFO_FILE, TrainInfo)
        write_json(folder / INFO_FILE, replace(info, data=(f"data {number // 2}",)))
        folders.append(folder)
    assert seeds_together(folders) == {
        "sft, 2 seeds": ["sft-0", "sft-1"],
        "sft, 2 seeds: sft-2, sft-3": ["sft-2", "sft-3"],
    }


@pytest.mark.parametrize("name", ["demo", "mine"])
def test_training_data_is_kept_apart_from_the_suite_itself_not_from_one_of_its_name(
    name: str, tmp_path: Path
) -> None:
    graph = small_graph()
    keys, ops = fingerprints(graph.graph), op_sequence(graph.graph.program)
    row = TrainingRow(
        keys.full, keys.structure, ops, len(ops), "float32", "net", "", "[]", "compiler",
        "a b c", "d e f", "", 6, "correct",
    )  # fmt: skip
    write_rows(tmp_path, [row], {}, Counter())
    suite, plan = make_suite(name, [graph]), EvaluationPlan(data=tmp_path)
    with pytest.raises(InputError, match=f"leak from evaluation.*of {name}"):
        systems_of(suite, [], plan)
    [nearest] = systems_of(only_tasks(load_suite("demo"), ("gelu_tanh",)), [], plan)
    assert nearest.answer([loops_prompt(graph.graph)]) == [["d e f"]]


def timed(system: str, number: int, speedup: float, verdict: str = "correct") -> AnswerRecord:
    status = "unstable" if verdict == "not judged" else "ok"
    smallest_t = -10 if verdict == "correct" else None
    return AnswerRecord(system, f"task{number}", f"graph{number}", "", 1, verdict, status,
                        smallest_t, speedup, 0.9 * speedup, (), None, 0.0)  # fmt: skip


def test_scores_are_compared_task_by_task_without_what_the_judge_could_not_say() -> None:
    fast = [timed("a", n, 2.0) for n in range(30)]
    wrong = [timed("b", n, 1.0, "wrong") for n in range(29)] + [timed("b", 29, 1.0, "not judged")]
    figures = summary("a", fast, True)
    assert figures.score == pytest.approx((2.0, 2.0, 2.0)) and figures.faster == 1.0
    assert summary("b", wrong, True).not_judged == 1 and "task29" not in log_scores(wrong)
    score, low, high = summary("b", wrong, True).score or (0.0, 0.0, 0.0)
    assert 0.1 < low == pytest.approx(score) == high < 0.4, "errors are tolerated at large t only"
    ratio = paired_gain(("a", fast), ("b", wrong), True).score_ratio
    assert ratio == pytest.approx((2.0 / score, 2.0 / score, 2.0 / score))
    unread = [replace(each, status="compile_error", speedup=None) for each in wrong[:29]]
    assert (summary("c", unread, True).score or (1.0,))[0] < score, "nothing of it was timed"


class AcceptingDesk:
    """Finds every answer correct, and counts how many it was asked about."""

    num_judged = 0

    def judge(self, task: Task, files: Files) -> list[Trial]:
        self.num_judged += 1
        return [
            Trial(task.name, graph.name, "passes", "ok", smallest_t=-9) for graph in task.graphs
        ]


class BrokenDesk:
    """Its own machinery fails."""

    def judge(self, task: Task, files: Files) -> list[Trial]:
        raise MeasureError("no worker can be started")


def evaluation(
    out: Path, info: EvaluationInfo, graphs: list[TaskGraph], desk: Any, **fields: Any
) -> AnswerEvaluation:
    return AnswerEvaluation(out, info, graphs, AnswerJudge(desk), print, **fields)


@pytest.mark.parametrize("is_timed", [False, True])
def test_the_same_answer_is_judged_once_unless_it_is_timed(is_timed: bool, tmp_path: Path) -> None:
    suite = load_suite("demo")
    graphs = [g for g in chosen_graphs(suite, 1, None) if g.task == "gelu_tanh"]
    asked = [loops_prompt(graph.graph) for graph in graphs]
    [[answer]] = teacher_answers(asked)
    info = EvaluationInfo("demo", "hash", tuple(g.name for g in graphs), is_timed)
    desk = AcceptingDesk()
    for name in ("one", "two"):
        system = AnsweringSystem(name, lambda _: [[answer]])
        [made] = evaluate_system(system, evaluation(tmp_path, info, graphs, desk))
        assert made.system == name and made.answer == answer and made.is_correct
    assert desk.num_judged == (2 if is_timed else 1)


def test_what_the_judge_could_not_say_is_asked_again(tmp_path: Path) -> None:
    graphs = [g for g in chosen_graphs(load_suite("demo"), 1, None) if g.task == "gelu_tanh"]
    [answer] = teacher_answers([loops_prompt(graph.graph) for graph in graphs])
    info = EvaluationInfo("demo", "hash", tuple(g.name for g in graphs), False)
    run = evaluation_run(tmp_path)
    busy = replace(record("one", 0, False), graph=graphs[0].name, verdict="not judged")
    with run.begin(info, False, unchanged("")), run.recorder(0) as put:
        put(busy)
    desk = AcceptingDesk()
    system = AnsweringSystem("one", lambda _: [answer])
    [made] = evaluate_system(system, evaluation(tmp_path, info, graphs, desk))
    assert made.is_correct and desk.num_judged == 1


def test_a_fault_of_the_judge_is_no_fault_of_the_answer(tmp_path: Path) -> None:
    graphs = [g for g in chosen_graphs(load_suite("demo"), 1, None) if g.task == "gelu_tanh"]
    [answer] = teacher_answers([loops_prompt(graph.graph) for graph in graphs])
    info = EvaluationInfo("demo", "hash", tuple(g.name for g in graphs), False)
    broken = evaluation(tmp_path, info, graphs, BrokenDesk())
    [made] = evaluate_system(AnsweringSystem("one", lambda _: [answer]), broken)
    assert (made.verdict, made.error) == ("not judged", "no worker can be started")


def test_answers_of_an_earlier_evaluation_are_judged_without_asking_again(tmp_path: Path) -> None:
    graphs = chosen_graphs(load_suite("demo"), 1, 2)
    names = tuple(graph.name for graph in graphs)
    untimed = EvaluationInfo("demo", "hash", names, False, num_drawn=4)
    prompts = [loops_prompt(graph.graph) for graph in graphs]
    told = [answers[0] for answers in teacher_answers(prompts)]
    assert len(told) == 2 and all(told)
    run = evaluation_run(tmp_path / "untimed")
    with run.begin(untimed, False, unchanged("")), run.recorder(0) as put:
        put(replace(record("llm", 0, False), graph=names[0], answer=told[0]))

    timed_info = replace(untimed, is_timed=True, suite="copied")
    earlier = earlier_answers([run.out], timed_info)
    assert earlier == {("llm", "", names[0]): told[0]}
    asked: list[int] = []

    def answerer(prompts: Sequence[Prompt]) -> list[list[str]]:
        asked.append(len(prompts))
        return [[told[1]] for _ in prompts]

    desk, out = AcceptingDesk(), tmp_path / "timed"
    again = evaluation(out, timed_info, graphs, desk, earlier=earlier)
    made = evaluate_system(AnsweringSystem("llm", answerer), again)
    assert [each.answer for each in made] == told and asked == [1] and desk.num_judged == 2
    evaluate_system(AnsweringSystem("other", answerer), again)
    assert asked == [1, 2], "an answer is its system's alone"
    evaluate_system(AnsweringSystem("llm", answerer, "of other weights"), again)
    assert asked == [1, 2, 2], "and another LLM of the same name is another system"

    for changes in ({"num_drawn": 1}, {"seed": 1}, {"suite_hash": "another"}):
        other = replace(timed_info, **changes)
        with pytest.raises(InputError, match="give the same"):
            earlier_answers([run.out], other)
    with pytest.raises(InputError, match="leave --samples out"):
        earlier_answers([run.out], replace(timed_info, num_samples=2))
