"""The passes for a net: looked up or written range by range, and the set that saves most."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.agent.settings import SEARCH_TURNS, LlmSettings
from passnet.core.hardware import Hardware, this_hardware
from passnet.data.capture.capture import CapturedGraph
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.settings import RunSettings
from passnet.optimizer.choose.judging import (
    LEAST_EVALUATIONS,
    JudgedPass,
    check_authors,
    judge_range,
    judging_settings,
    let_author_write,
    pass_outcome,
    range_evaluator,
)
from passnet.optimizer.choose.llm_author import LEAST_S, let_llm_write
from passnet.optimizer.choose.ranges import NetRange, Place, RefusedPlace, net_ranges
from passnet.optimizer.choose.selection import best_disjoint
from passnet.passes.library.entries import EntryStatus, PassEntry, all_entries, entry_folder
from passnet.passes.library.store import PassLibrary
from passnet.version import __version__

LIBRARY = "library"
"""The author that is none: what was judged before."""

EVALUATION_S = 2.0
"""Seconds of an evaluation where none was made before."""

TRAJECTORIES = "llm"
"""The folder of what an llm was told and said, and of what came of it."""

RangeStatus: TypeAlias = EntryStatus | Literal["unstable", "unfinished"]
"""How a pass for a range did. unstable: the machine was too busy to tell. unfinished: the llm gave
no answer, or had too little time. Neither is kept in the library, so that it is tried again.
"""


@dataclass(frozen=True, slots=True)
class RangeResult:
    """How a pass for a range of a net did: a row of the table.

    Args:
        fingerprint: of the range.
        ops: what it calls, in order.
        places: where it is in the net.
        author: who wrote the pass, or was to.
        is_known: whether it was judged earlier.
        eager_ms: a call of the range by eager torch.
        pass_ms: and with the pass.
        saved_ms: what that saves at least in one place, by the lower bound of its interval.
        speedup: eager torch's time over the pass's.
        speedup_low: the lower bound of its interval.
        speedup_high: and the upper one.
        digest: of the entry in the library; None where it is not kept.
    """

    fingerprint: str
    ops: tuple[str, ...]
    places: tuple[Place, ...]
    author: str
    status: RangeStatus
    is_known: bool
    eager_ms: float | None = None
    pass_ms: float | None = None
    saved_ms: float = 0.0
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    error: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ChosenRange:
    """A place in which a pass is to be applied, and what it is expected to save there."""

    place: Place
    result: RangeResult
    folder: Path


@dataclass(frozen=True, slots=True)
class PassChoice:
    """The passes for a net.

    Args:
        chosen: where passes are to be applied; no two places overlap.
        results: of every range that was considered, in the order in which they were.
        num_untried: ranges that were given to no author, as the budget was spent.
        left_out: places that can be no range, and why.
        seconds: how long it took to choose.
    """

    chosen: tuple[ChosenRange, ...]
    results: tuple[RangeResult, ...]
    num_untried: int = 0
    left_out: tuple[RefusedPlace, ...] = ()
    seconds: float = 0.0

    @property
    def folders(self) -> tuple[Path, ...]:
        """The pass folders to apply, in this order: those for larger ranges first, since their
        patterns may hold those of smaller ones.
        """
        ordered = sorted(self.chosen, key=lambda each: -len(each.result.ops))
        return tuple(dict.fromkeys(each.folder for each in ordered))

    @property
    def saved_ms(self) -> float:
        """Return what all of them save at least, as far as ranges by themselves tell."""
        return sum(each.result.saved_ms for each in self.chosen)


RangeProgress: TypeAlias = Callable[[RangeResult], None]


def choose_passes(
    graphs: Sequence[CapturedGraph],
    library: PassLibrary,
    authors: Sequence[str] = (LIBRARY, "compiler"),
    budget_s: float = 600.0,
    threads: int = 1,
    progress: RangeProgress | None = None,
    evaluator: JudgeDesk | None = None,
    llm: LlmSettings | None = None,
    trajectories: Path = Path(TRAJECTORIES),
    shipped: Path | None = None,
) -> PassChoice:
    """Find passes for the ranges of a net, and choose those that save most together.

    Each range is looked up in the library first, if that is among the authors; a pass that was
    judged elsewhere is judged here. Then each author writes for the ranges that it has not tried
    before, those that take longest first, until the budget is spent. All that is judged is added to
    the library at once: after a kill the same call goes on where it was.

    Args:
        graphs: the net as it was captured.
        library: where passes are looked up and kept.
        authors: "library", and programs that write passes, in this order.
        budget_s: seconds after which nothing more is begun.
        threads: of each call that is timed.
        progress: called with every result, as soon as it is known.
        evaluator: where to judge, if processes for that run already, as those of
            `range_evaluator`; their settings then count instead of `threads`.
        llm: one that writes for what it has not tried before, after all other authors, who then
            have half of the budget.
        trajectories: where its attempts are kept.
        shipped: a further library, whose passes are taken over into the first if "library" is among
            the authors.

    Raises:
        InputError: there is no author of a name, or the library is damaged.
    """
    writers = writers_of(authors)
    if shipped is not None and LIBRARY in authors:
        library.merge(shipped)
    start = time.monotonic()
    deadline = start + (budget_s / 2 if llm is not None else budget_s)
    settings = judging_settings(threads) if evaluator is None else evaluator.settings
    hardware = this_hardware(settings.num_threads, settings.judge.device)
    with ExitStack() as stack:
        choosing = _Choosing(library, hardware, settings, deadline, progress, stack, evaluator)
        known = [
            entry
            for entry in (library.entries() if LIBRARY in authors or llm is not None else [])
            if LIBRARY in authors or (llm is not None and entry.author == llm.name)
        ]
        sequences = {entry.ops for entry in known if entry.code_hash}
        ranges, left_out = net_ranges(graphs, sequences)
        choosing.look_up(ranges, known)
        for author in writers:
            choosing.let_write(author, ranges)
        if llm is not None:
            choosing.deadline = start + budget_s
            choosing.let_llm_write(llm, trajectories, ranges)
    chosen = choose(choosing.results, library)
    seconds = time.monotonic() - start
    results, untried = tuple(choosing.results), len(choosing.untried)
    return PassChoice(tuple(chosen), results, untried, tuple(left_out), seconds)


def writers_of(authors: Sequence[str]) -> tuple[str, ...]:
    """Those of some authors that write passes.

    Raises:
        InputError: there is no author of a name.
    """
    writers = tuple(author for author in authors if author != LIBRARY)
    check_authors(writers)
    return writers


def choose(results: Iterable[RangeResult], library: PassLibrary) -> list[ChosenRange]:
    """Of all places with a pass that wins those that save most together, in each graph."""
    best: dict[Place, RangeResult] = {}
    for result in results:
        if result.digest is not None and result.saved_ms > 0:
            for place in result.places:  # passes for one range are compared as in the library
                rival = best.setdefault(place, result)
                best[place] = max(rival, result, key=lambda each: each.speedup_low or 0.0)
    places = sorted(best, key=lambda place: (place.graph, place.start, place.stop))
    # also those that another process has judged again meanwhile
    entries = {entry.digest: entry for entry in all_entries(library.folder)} if places else {}
    chosen = []
    for _, group in groupby(places, key=lambda place: place.graph):
        members = list(group)
        spans = [(place.start, place.stop, best[place].saved_ms) for place in members]
        for number in best_disjoint(spans):
            result = best[members[number]]
            folder = entry_folder(library.folder, entries[result.digest or ""])
            chosen.append(ChosenRange(members[number], result, folder))
    return chosen


@dataclass
class _Choosing:
    """The work on the ranges of one net; the judge's processes start when first needed."""

    library: PassLibrary
    hardware: Hardware
    settings: RunSettings
    deadline: float
    progress: RangeProgress | None
    stack: ExitStack
    evaluator: JudgeDesk | None
    results: list[RangeResult] = field(default_factory=list)
    tried: set[tuple[str, str]] = field(default_factory=set)
    untried: set[str] = field(default_factory=set)
    evaluation_s: dict[str, float] = field(default_factory=dict)

    def look_up(self, ranges: Sequence[NetRange], known: Sequence[PassEntry]) -> None:
        """What the library knows of some ranges; passes that were judged elsewhere are judged."""
        by_range: dict[str, list[PassEntry]] = {}
        for entry in known:
            by_range.setdefault(entry.range, []).append(entry)
        for each in ranges:
            entries = by_range.get(each.key.fingerprint, [])
            own = [e for e in entries if e.hardware == self.hardware and e.origin == "here"]
            for entry in own:
                # what did not win may, by an author of another version
                if entry.saved_ms > 0 or entry.passnet == __version__:
                    self.tried.add((entry.range, entry.author))
                self._tell(_known(each, entry))
            judged = {entry.code_hash for entry in own} | {""}
            for entry in sorted(entries, key=lambda entry: -entry.saved_ms):
                if entry.code_hash not in judged and time.monotonic() < self.deadline:
                    judged.add(entry.code_hash)
                    files = self.library.files(entry)
                    self._keep(each, entry.author, judge_range(self._judge(), each.key, files))

    def let_write(self, author: str, ranges: Sequence[NetRange]) -> None:
        """Give ranges to an author, those that take longest first, until the budget is spent."""
        hopeless = {result.fingerprint for result in self.results if result.status == "nothing"}
        for each in self._by_time(ranges):
            name = each.key.fingerprint
            if (name, author) in self.tried or (author == "search" and name in hopeless):
                continue
            left_s = self.deadline - time.monotonic()
            evaluations = min(SEARCH_TURNS, int(left_s / self.evaluation_s.get(name, EVALUATION_S)))
            if left_s <= 0 or (author == "search" and evaluations < LEAST_EVALUATIONS):
                self.untried.add(name)
                continue
            judged = let_author_write(self._judge(), each.key, author, evaluations)
            if judged.evaluation_s is not None:
                self.evaluation_s[name] = judged.evaluation_s
            self._keep(each, author, judged)

    def let_llm_write(self, llm: LlmSettings, folder: Path, ranges: Sequence[NetRange]) -> None:
        """Give ranges to an llm, those that take longest first: each half of the time that is left,
        the last one all of it. One that does not answer is not asked again.
        """
        waiting = [
            each for each in self._by_time(ranges)
            if (each.key.fingerprint, llm.name) not in self.tried
        ]  # fmt: skip
        for number, each in enumerate(waiting):
            left_s = self.deadline - time.monotonic()
            if left_s < LEAST_S:
                self.untried.update(other.key.fingerprint for other in waiting[number:])
                return
            seconds = left_s if each is waiting[-1] else max(left_s / 2, LEAST_S)
            judged = let_llm_write(self._judge(), each.key, llm, seconds, folder)
            self._keep(each, llm.name, judged)
            if not judged.is_answered:
                self.untried.update(other.key.fingerprint for other in waiting[number + 1 :])
                return

    def _by_time(self, ranges: Sequence[NetRange]) -> list[NetRange]:
        """Ranges in the order of what eager torch takes for them in all places, most first."""
        eager_ms = {
            result.fingerprint: result.eager_ms * len(result.places)
            for result in self.results
            if result.eager_ms is not None
        }
        return sorted(ranges, key=lambda each: -eager_ms.get(each.key.fingerprint, each.guess_ms))

    def _judge(self) -> JudgeDesk:
        if self.evaluator is None:
            self.evaluator = self.stack.enter_context(range_evaluator(self.settings))
        return self.evaluator

    def _keep(self, each: NetRange, author: str, judged: JudgedPass) -> None:
        """Add what was judged to the library, and tell of it."""
        outcome = pass_outcome(judged, self.settings)
        if outcome.status is None or not judged.is_final:
            names = (each.key.fingerprint, each.key.ops, each.places, author)
            status: RangeStatus = "unstable" if outcome.status is None else "unfinished"
            self._tell(RangeResult(*names, status, False, error=outcome.error))
            return
        entry = self.library.add(each.key, author, self.hardware, judged.files, outcome)
        self._tell(replace(_known(each, entry), is_known=False))

    def _tell(self, result: RangeResult) -> None:
        self.results.append(result)
        if self.progress is not None:
            self.progress(result)


def _known(each: NetRange, entry: PassEntry) -> RangeResult:
    """Return the result that an entry is for a range."""
    return RangeResult(
        each.key.fingerprint,
        each.key.ops,
        each.places,
        entry.author,
        entry.status,
        True,
        entry.reference_ms,
        entry.candidate_ms,
        entry.saved_ms,
        entry.speedup,
        entry.speedup_low,
        entry.speedup_high,
        entry.error,
        entry.digest,
    )
