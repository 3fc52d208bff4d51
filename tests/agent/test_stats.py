"""The statistics of a few attempts, by hand."""

import math
from pathlib import Path

import pytest

from passnet.agent.attempts.attempt import Evaluation, ToolTime, VariantResult, best_state
from passnet.agent.trajectories.stats import AuthorStats, best_so_far, summarise
from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError
from passnet.pages.tables.attempt_tables import curve_table, draw_curves, stats_tables
from passnet.pages.tables.tables import markdown
from tests.agent.attempts import attempt, evaluation


def evaluations(*scores: float | None, passing: str = ""):
    """One evaluation a score; `passing` says by + and - which states pass."""
    passing = passing or "+" * len(scores)
    return tuple(
        evaluation(number + 1, score, passing=passing[number] == "+")
        for number, score in enumerate(scores)
    )


def test_the_best_so_far_never_falls_and_is_unknown_before_anything_is_timed() -> None:
    assert best_so_far(evaluations(None, 0.5, 2.0, 1.0)) == [None, 0.5, 2.0, 2.0]


def test_a_graph_that_was_not_timed_improves_no_curve() -> None:
    def state(first: float, second: float | None, score: float) -> Evaluation:
        variants = tuple(
            VariantResult(
                name, "unstable" if value is None else "ok", -6, value, value, value, None, {}, ()
            )
            for name, value in (("a", first), ("b", second))
        )
        return Evaluation(1, {}, variants, score, 1.0, 0.0)

    both = state(2.0, 0.5, 1.0)
    assert best_so_far([both, state(1.9, None, 1.9)]) == [1.0, 1.0]
    states = [both, state(2.2, None, 2.2), state(2.1, 0.6, 1.1)]
    best = best_state([(each.results, each.is_passing) for each in states])
    assert best == 2 and best_so_far(states) == [1.0, 2.2, 1.1], "its own AS, as in the record"


def test_what_was_not_timed_is_missing_from_the_curve_and_counted() -> None:
    busy = attempt(number=1, evaluations=evaluations(None, None, 2.0), best=2, score=2.0)
    quiet = attempt(evaluations=evaluations(0.5), best=0, score=0.5)
    never = attempt(number=2, evaluations=evaluations(None), score=None, final_score=None)
    (stats,) = summarise([quiet, busy, never])
    assert stats.curve == pytest.approx((0.5, 0.5, 1.0))
    assert stats.curve_untimed == (2, 2, 1)
    (unknown,) = summarise([never])
    assert (unknown.curve, unknown.curve_untimed) == ((None,), (1,))
    text = markdown([curve_table([stats]), curve_table([unknown])])
    assert "0.500 (2 not timed)" in text and "– (1 not timed)" in text and "0.100" not in text


def test_a_submission_that_was_not_timed_is_neither_solved_nor_failed(tmp_path: Path) -> None:
    busy = {"evaluations": evaluations(None), "score": None, "final_score": None}
    (stats,) = summarise([attempt(), attempt(number=1, **busy), attempt(task="tanh", **busy)])
    assert (stats.num_submitted, stats.num_untimed) == (3, 2)
    assert (stats.solved_ratio, stats.tasks_solved_ratio) == (1.0, 1.0)
    assert stats.geomean_score == pytest.approx(1.5)
    (unknown,) = summarise([attempt(**busy)])
    assert (unknown.solved_ratio, unknown.tasks_solved_ratio) == (None, None)
    draw_curves([unknown], tmp_path / "curves.svg")
    assert decode(encode(unknown), AuthorStats) == unknown


def test_the_curve_is_a_geometric_mean_in_which_who_has_ended_keeps_the_last() -> None:
    stats = summarise(
        [
            attempt(evaluations=evaluations(0.5, 2.0, 1.0, 4.0), best=3, score=4.0),
            attempt(number=1, evaluations=evaluations(2.0), best=0, score=2.0),
        ]
    )
    assert stats[0].curve == pytest.approx((1.0, 2.0, 2.0, math.sqrt(8)))
    assert stats[0].mean_score == 3.0
    assert stats[0].geomean_score == pytest.approx(math.sqrt(8))


def test_an_author_without_a_state_counts_as_failed_in_the_curve() -> None:
    nothing = attempt(number=1, evaluations=(), best=None, score=None, final_score=None)
    (stats,) = summarise([attempt(evaluations=evaluations(1.0)), nothing])
    assert stats.curve == pytest.approx((math.sqrt(0.1),))
    assert (stats.num_scored, stats.num_submitted, stats.solved_ratio) == (2, 1, 0.5)


def test_an_author_without_a_submission_counts_as_failed_in_every_score() -> None:
    nothing = attempt(number=1, best=None, score=None, final_score=None, ending="turns")
    (stats,) = summarise([attempt(), nothing])
    assert stats.mean_score == pytest.approx((1.5 + 0.1) / 2)
    assert stats.geomean_score == pytest.approx(math.sqrt(1.5 * 0.1))
    assert stats.geomean_final_score == pytest.approx(math.sqrt(1.4 * 0.1))
    assert "submitted nothing counts as an AS of 0.1" in markdown(stats_tables([stats]))


def test_an_attempt_that_ended_in_an_error_is_counted_and_in_no_score() -> None:
    failed = attempt(number=1, ending="error", evaluations=evaluations(9.0), final_score=9.0)
    (stats,) = summarise([attempt(), failed])
    assert (stats.num_attempts, stats.num_scored) == (2, 1)
    assert stats.geomean_final_score == pytest.approx(1.4)
    assert stats.curve == pytest.approx((1.5,))
    assert stats.endings == {"error": 1, "submitted": 1}


def test_solved_is_a_final_score_above_that_of_leaving_the_graphs_alone() -> None:
    (stats,) = summarise([attempt(final_score=1.0), attempt(number=1, task="tanh")])
    assert (stats.num_tasks, stats.solved_ratio, stats.tasks_solved_ratio) == (2, 0.5, 0.5)


def test_flips_are_passes_that_failed_and_passed_again() -> None:
    (stats,) = summarise(
        [
            attempt(evaluations=evaluations(1.0, 0.1, 1.0, 0.1, 1.0, passing="+-+-+")),
            attempt(number=1, evaluations=evaluations(0.1, 1.0, 0.1, passing="-+-")),
        ]
    )
    assert (stats.flipped_ratio, stats.flips_per_attempt) == (0.5, 1.0)


def test_exploits_are_counted_by_attempt_and_by_evaluation_and_by_name() -> None:
    tried = evaluation(1, None, findings=("static_buffer", "zeros"))
    (stats,) = summarise(
        [
            attempt(evaluations=(tried, tried, evaluation(3, 1.5)), best=2),
            attempt(number=1, evaluations=(evaluation(1, 1.5),)),
        ]
    )
    assert (stats.exploit_attempts_ratio, stats.exploit_evaluations_ratio) == (0.5, 0.5)
    assert stats.exploits == {"static_buffer": 1, "zeros": 1}


def test_own_time_is_summed_by_turn_and_kept_by_tool() -> None:
    times = (
        ToolTime(1, "Create", 0.1, 0.1),
        ToolTime(1, "Evaluate", 5.0, 0.3),
        ToolTime(2, "Evaluate", 5.0, 0.5),
    )
    (stats,) = summarise([attempt(tool_times=times)])
    turn, create, evaluate = stats.own_s
    assert (turn.tool, turn.num_calls) == ("turn", 2)
    assert (turn.median_s, turn.p95_s) == (pytest.approx(0.45), pytest.approx(0.495))
    assert (create.num_calls, create.median_s) == (1, pytest.approx(0.1))
    assert (evaluate.median_s, evaluate.p95_s) == (pytest.approx(0.4), pytest.approx(0.49))


def test_costs_are_summed_where_they_are_known() -> None:
    (none,) = summarise([attempt()])
    (some,) = summarise([attempt(cost=0.5, input_tokens=10), attempt(number=1, input_tokens=5)])
    assert (none.cost, some.cost, some.input_tokens) == (None, 0.5, 15)


def test_authors_and_llms_are_kept_apart_and_in_order() -> None:
    stats = summarise(
        [attempt(llm="open/two"), attempt(author="compiler", llm=None), attempt(llm="open/one")]
    )
    assert [author.name for author in stats] == ["compiler", "llm open/one", "llm open/two"]


def test_suites_are_kept_apart_and_named_where_there_are_several() -> None:
    two = [attempt(suite_hash="1" * 64), attempt(suite="zoo", final_score=1.0)]
    first, second = summarise(two)
    assert (first.num_attempts, second.num_attempts) == (1, 1)
    assert (first.solved_ratio, second.solved_ratio) == (1.0, 0.0)
    assert second.name == f"{summarise(two[1:])[0].name}, zoo"
    again = [*two, attempt(suite_hash="2" * 64)]
    assert [stats.name.split(", ")[1] for stats in summarise(again)][-1] == "zoo"
    assert sum("(11111111)" in stats.name for stats in summarise(again)) == 1


def test_no_attempts_are_refused() -> None:
    with pytest.raises(InputError, match="no attempts"):
        summarise([])


def test_statistics_are_a_record_and_make_tables_and_a_figure(tmp_path: Path) -> None:
    nothing = attempt(author="search", llm=None, ending="error", evaluations=(), best=None,
                      score=None, final_score=None, tool_times=())  # fmt: skip
    longest = attempt(evaluations=evaluations(1.0, 1.2, 1.1, 1.3, 1.5), best=4)
    stats = summarise([longest, nothing])
    assert [decode(encode(author), AuthorStats) for author in stats] == stats
    text = markdown(stats_tables(stats))
    assert "| author | 1 | 2 | 4 | 5 |" in text
    assert "| llm open/one | 1.000 | 1.200 | 1.300 | 1.500 |" in text
    assert "| search | – | – | – | – |" in text
    draw_curves(stats, tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").stat().st_size > 1000
