"""The choice of passes: the best set exactly, what is known is not judged again, budgets hold."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.core.hardware import this_hardware
from passnet.data.capture.capture import CapturedGraph, capture_values
from passnet.errors import InputError
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.optimizer.choose.judging import outcome_on
from passnet.optimizer.choose.pass_choice import RangeResult, best_disjoint, choose, choose_passes
from passnet.optimizer.choose.ranges import Place
from passnet.passes.library.entries import PassEntry, latest, winning
from passnet.passes.library.store import (
    PassLibrary,
    PassOrder,
    PassOutcome,
    entry_range,
    verify_library,
)
from tests.optimizer.libraries import HERE, folder, outcome, tanh_mul

pytestmark = pytest.mark.xdist_group("agent")

SPANS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(-2, 9).map(float)), max_size=9
)


def is_disjoint(spans: list[tuple[int, int, float]]) -> bool:
    ordered = sorted(spans)
    return all(first[1] <= second[0] for first, second in pairwise(ordered))


@settings(max_examples=300, deadline=None, database=None)
@given(SPANS)
def test_no_set_of_spans_that_do_not_overlap_saves_more(
    spans: list[tuple[int, int, float]],
) -> None:
    chosen = [spans[number] for number in best_disjoint(spans)]
    assert is_disjoint(chosen) and chosen == sorted(chosen)
    assert all(start < stop and saving > 0 for start, stop, saving in chosen)
    usable = [span for span in spans if span[0] < span[1]]
    best = max(
        sum(saving for _, _, saving in some)
        for count in range(len(usable) + 1)
        for some in combinations(usable, count)
        if is_disjoint(list(some))
    )
    assert sum(saving for _, _, saving in chosen) == best


def test_what_is_shipped_is_taken_over_for_who_asks_for_the_library(tmp_path: Path) -> None:
    shipped = PassLibrary(tmp_path / "shipped")
    shipped.add(tanh_mul(), "compiler", HERE, folder(), outcome())
    own = PassLibrary(tmp_path / "own")
    choose_passes([], own, ("compiler",), shipped=shipped.folder)
    assert not own.entries()
    for _ in range(2):
        assert not choose_passes([], own, ("library",), shipped=shipped.folder).chosen
        [entry] = own.entries()
        assert entry.origin == "elsewhere" and not winning(own.entries(), HERE)


def test_places_of_the_best_set_are_chosen_in_each_graph(tmp_path: Path) -> None:
    library = PassLibrary(tmp_path)

    def result(
        name: str, saved: float, *places: Place, ops: int = 1, low: float = 1.5
    ) -> RangeResult:
        files = folder(f"a.tanh() * b * {len(name)}")
        entry = library.add(tanh_mul(), name, HERE, files, outcome())
        return RangeResult(name, ("op",) * ops, places, name, "wins", saved_ms=saved,
                           speedup_low=low, digest=entry.digest)  # fmt: skip

    whole = result("whole", 3.0, Place(0, 0, 4), Place(1, 0, 4), ops=4)
    first = result("a", 2.0, Place(0, 0, 2), ops=2)
    last = result("bb", 1.5, Place(0, 2, 4), ops=2)
    worse = result("ccc", 1.8, Place(0, 2, 4), ops=2, low=1.2)
    slower = result("dddd", 0.0, Place(1, 4, 6), ops=2)
    chosen = choose([whole, first, last, worse, slower], library)
    assert [(each.place, each.result) for each in chosen] == [
        (Place(0, 0, 2), first), (Place(0, 2, 4), last), (Place(1, 0, 4), whole),
    ]  # fmt: skip


class Net(torch.nn.Module):
    """One range of ops between two products."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (torch.tanh(x @ x) * x + 1.0) @ x


@pytest.fixture(scope="module")
def graphs() -> list[CapturedGraph]:
    with torch.no_grad():
        return capture_values(Net(), torch.randn(64, 64))


@pytest.fixture(scope="module")
def bench() -> Iterator[JudgeDesk]:
    judge = JudgeSettings(timing=TimingPlan(seconds=0.05, keeps_awake=False), self_tolerance=1e9)
    with JudgeDesk(RunSettings(judge, 1, find_sandbox("auto").name), "direct") as evaluator:
        yield evaluator


def test_what_is_judged_is_kept_and_not_judged_again(
    tmp_path: Path, graphs: list[CapturedGraph], bench: JudgeDesk
) -> None:
    library = PassLibrary(tmp_path / "library")
    choice = choose_passes(graphs, library, ["library", "compiler"], evaluator=bench)
    [result] = choice.results
    assert result.status in ("wins", "slower")
    assert result.ops == ("torch.tanh", "operator.mul", "operator.add")
    assert result.eager_ms and result.pass_ms and result.places == (Place(0, 1, 4),)
    is_chosen = result.status == "wins"
    assert len(choice.folders) == is_chosen and (result.saved_ms > 0) == is_chosen
    [entry] = library.entries()
    again = choose_passes(graphs, library, budget_s=0.0, evaluator=bench)
    assert again.results == (result,)
    # from elsewhere, it is judged here before it is used
    other = PassLibrary(tmp_path / "other")
    other.merge(library.folder)
    [judged] = choose_passes(graphs, other, ["library"], evaluator=bench).results
    assert judged.author == "compiler" and judged.eager_ms
    assert {each.origin for each in other.entries()} == {"here"}
    assert other.files(other.entries()[0]) == library.files(entry)


def test_a_spent_budget_leaves_ranges_untried(tmp_path: Path, graphs: list[CapturedGraph]) -> None:
    library = PassLibrary(tmp_path / "library")
    choice = choose_passes(graphs, library, ["compiler", "search"], budget_s=0.0)
    assert not choice.results and not choice.folders
    assert not library.entries()


def test_an_author_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no author 'compilr'.*did you mean compiler"):
        choose_passes([], PassLibrary(tmp_path), ["library", "compilr"])


def test_a_pass_that_turns_out_wrong_is_used_no_more(tmp_path: Path, bench: JudgeDesk) -> None:
    library = PassLibrary(tmp_path)
    hardware = this_hardware(1)
    entry = library.add(tanh_mul(), "compiler", hardware, folder("a.tanh() + b"), outcome())
    assert winning(library.entries(), hardware) == [entry]

    def judge(orders: Sequence[PassOrder]) -> list[tuple[PassEntry, PassOutcome]]:
        return [(each, outcome_on(bench, key, files)) for each, key, files in orders]

    [verified] = verify_library(library, library.orders([entry]), judge, hardware)
    assert verified.is_wrong and not verified.is_used
    assert verified.after is not None and verified.after.status == "wrong"
    assert not winning(library.entries(), hardware)
    assert latest(library.entries()) == [verified.after], "with its record"
    assert entry_range(verified.after) == tanh_mul()
