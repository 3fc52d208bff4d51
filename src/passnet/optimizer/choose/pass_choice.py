"""The passes for a net: looked up or written range by range, and the set that saves most."""

import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from passnet.agent.authors.programs import program_author
from passnet.agent.settings import SEARCH_TURNS, LlmSettings
from passnet.core.hardware import Hardware, this_hardware
from passnet.data.capture.capture import CapturedGraph
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.settings import RunSettings
from passnet.optimizer.choose import judging
from passnet.optimizer.choose.ranges import NetRange, Place, net_ranges
from passnet.passes.library.entries import EntryStatus, PassEntry, all_entries, entry_folder
from passnet.passes.library.store import PassLibrary
from passnet.version import __version__

LIBRARY = "library"
"""The pseudo-author of passes that were judged before."""

EVALUATION_S = 2.0
"""A guess of the seconds of an evaluation before the first one."""

TRAJECTORIES = "llm"
"""The folder of an LLM's attempts."""

RangeStatus: TypeAlias = EntryStatus | Literal["unstable", "unfinished"]
"""unstable: the machine was busy. unfinished: the LLM had too little time. Both are tried again."""


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The result of a pass for a range of a net; `saved_ms` is the least saving in one place."""

    fingerprint: str
    ops: tuple[str, ...]
    places: tuple[Place, ...]
    author: str
    status: RangeStatus
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
    """A place to apply a pass, and the result that promises a saving."""

    place: Place
    result: RangeResult
    folder: Path


@dataclass(frozen=True, slots=True)
class PassChoice:
    """The chosen passes, and all results."""

    chosen: tuple[ChosenRange, ...]
    results: tuple[RangeResult, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """The pass folders, those for larger ranges first, as these may hold smaller ones."""
        ordered = sorted(self.chosen, key=lambda choice: -len(choice.result.ops))
        return tuple(dict.fromkeys(choice.folder for choice in ordered))


def choose_passes(
    graphs: Sequence[CapturedGraph],
    library: PassLibrary,
    authors: Sequence[str] = (LIBRARY, "compiler"),
    budget_s: float = 600.0,
    threads: int = 1,
    evaluator: JudgeDesk | None = None,
    llm: LlmSettings | None = None,
    trajectories: Path = Path(TRAJECTORIES),
    shipped: Path | None = None,
) -> PassChoice:
    """Find passes for the ranges of a net, and choose the set that saves most.

    Each range is looked up in the library first, if "library" is an author; a pass that was judged
    elsewhere is judged here. Then each author writes for the ranges that it has not tried before,
    the slowest first, until the budget is spent. Each judged pass enters the library at once, so
    that the same call continues an interrupted one.

    Args:
        graphs: the captured graphs of the net.
        library: the library to look up and to extend.
        authors: "library", and programs that write passes, in this order.
        budget_s: begin nothing more after so many seconds.
        threads: of each call that is timed.
        evaluator: a running judge; its settings then count instead of `threads`.
        llm: an LLM that writes after all other authors, who then have half of the budget.
        trajectories: the folder of its attempts.
        shipped: a further library, merged into the first if "library" is an author.
    """
    writers = writers_of(authors)
    if shipped is not None and LIBRARY in authors:
        library.merge(shipped)
    start = time.monotonic()
    deadline = start + (budget_s / 2 if llm is not None else budget_s)
    settings = judging.judging_settings(threads) if evaluator is None else evaluator.settings
    hardware = this_hardware(settings.num_threads, settings.judge.device)
    with ExitStack() as stack:
        choosing = _Choosing(library, hardware, settings, deadline, stack, evaluator)
        entries = library.entries() if LIBRARY in authors or llm is not None else []
        if LIBRARY not in authors and llm is not None:
            entries = [entry for entry in entries if entry.author == llm.name]
        ranges, _ = net_ranges(graphs, {entry.ops for entry in entries if entry.code_hash})
        choosing.look_up(ranges, entries)
        for author in writers:
            choosing.let_write(author, ranges)
        if llm is not None:
            choosing.deadline = start + budget_s
            choosing.let_llm_write(llm, trajectories, ranges)
    chosen = choose(choosing.results, library)
    return PassChoice(tuple(chosen), tuple(choosing.results))


def writers_of(authors: Sequence[str]) -> tuple[str, ...]:
    """Return the authors that write passes; InputError for an unknown name."""
    writers = tuple(author for author in authors if author != LIBRARY)
    for author in writers:
        program_author(author, SEARCH_TURNS)
    return writers


def choose(results: Iterable[RangeResult], library: PassLibrary) -> list[ChosenRange]:
    """Return the places with winning passes that save most together, in each graph."""
    best: dict[Place, RangeResult] = {}
    for result in results:
        if result.digest is not None and result.saved_ms > 0:
            for span in result.places:  # passes for one range are compared as in the library
                best[span] = max(best.get(span, result), result, key=lambda r: r.speedup_low or 0.0)
    ordered = sorted(best, key=lambda p: (p.graph, p.start, p.stop))
    # also those that another process has judged again meanwhile
    entries = {entry.digest: entry for entry in all_entries(library.folder)} if ordered else {}
    choices = []
    for _, group in groupby(ordered, key=lambda p: p.graph):
        members = list(group)
        for number in best_disjoint([(p.start, p.stop, best[p].saved_ms) for p in members]):
            result = best[members[number]]
            folder = entry_folder(library.folder, entries[result.digest or ""])
            choices.append(ChosenRange(members[number], result, folder))
    return choices


@dataclass
class _Choosing:
    """The work on the ranges of one net; the judge's processes start when first needed."""

    library: PassLibrary
    hardware: Hardware
    settings: RunSettings
    deadline: float
    stack: ExitStack
    evaluator: JudgeDesk | None
    results: list[RangeResult] = field(default_factory=list)
    tried: set[tuple[str, str]] = field(default_factory=set)
    evaluation_s: dict[str, float] = field(default_factory=dict)

    def look_up(self, ranges: Sequence[NetRange], entries: Sequence[PassEntry]) -> None:
        """Take the library's results for some ranges; passes from other machines are judged."""
        by_range: dict[str, list[PassEntry]] = {}
        for entry in entries:
            by_range.setdefault(entry.range, []).append(entry)
        for net_range in ranges:
            candidates = by_range.get(net_range.key.fingerprint, [])
            own = [e for e in candidates if e.hardware == self.hardware and e.origin == "here"]
            for entry in own:
                # what did not win may, by an author of another version
                if entry.saved_ms > 0 or entry.passnet == __version__:
                    self.tried.add((entry.range, entry.author))
                self.results.append(_result(net_range, entry))
            judged = {entry.code_hash for entry in own} | {""}
            for entry in sorted(candidates, key=lambda entry: -entry.saved_ms):
                if entry.code_hash not in judged and time.monotonic() < self.deadline:
                    judged.add(entry.code_hash)
                    files = self.library.files(entry)
                    outcome = judging.judge_range(self._judge(), net_range.key, files)
                    self._keep(net_range, entry.author, outcome)

    def let_write(self, author: str, ranges: Sequence[NetRange]) -> None:
        """Give ranges to an author, the slowest first, until the budget is spent."""
        hopeless = {result.fingerprint for result in self.results if result.status == "nothing"}
        for net_range in self._by_time(ranges):
            name = net_range.key.fingerprint
            if (name, author) in self.tried or (author == "search" and name in hopeless):
                continue
            left_s = self.deadline - time.monotonic()
            evaluations = min(SEARCH_TURNS, int(left_s / self.evaluation_s.get(name, EVALUATION_S)))
            if left_s <= 0 or (author == "search" and evaluations < judging.LEAST_EVALUATIONS):
                continue
            judged = judging.let_author_write(self._judge(), net_range.key, author, evaluations)
            if judged.evaluation_s is not None:
                self.evaluation_s[name] = judged.evaluation_s
            self._keep(net_range, author, judged)

    def let_llm_write(self, llm: LlmSettings, folder: Path, ranges: Sequence[NetRange]) -> None:
        """Give ranges to an LLM, the slowest first, each for half of the remaining time.

        The last one gets all of it. An LLM that does not answer is not asked again.
        """
        ordered = self._by_time(ranges)
        waiting = [r for r in ordered if (r.key.fingerprint, llm.name) not in self.tried]
        while waiting:
            left_s = self.deadline - time.monotonic()
            if left_s < judging.LEAST_S:
                break
            net_range = waiting.pop(0)
            seconds = max(left_s / 2, judging.LEAST_S) if waiting else left_s
            judged = judging.let_llm_write(self._judge(), net_range.key, llm, seconds, folder)
            self._keep(net_range, llm.name, judged)
            if not judged.is_answered:
                break

    def _by_time(self, ranges: Sequence[NetRange]) -> list[NetRange]:
        """Return ranges by the time of eager torch in all places, the slowest first."""
        eager_ms = {
            result.fingerprint: result.eager_ms * len(result.places)
            for result in self.results
            if result.eager_ms is not None
        }
        return sorted(ranges, key=lambda r: -eager_ms.get(r.key.fingerprint, r.guess_ms))

    def _judge(self) -> JudgeDesk:
        if self.evaluator is None:
            self.evaluator = self.stack.enter_context(JudgeDesk(self.settings, "direct"))
        return self.evaluator

    def _keep(self, net_range: NetRange, author: str, judged: judging.JudgedPass) -> None:
        """Add a judged pass to the library and to the results."""
        outcome = judging.pass_outcome(judged, self.settings)
        if outcome.status is None or not judged.is_final:
            names = (net_range.key.fingerprint, net_range.key.ops, net_range.places, author)
            status: RangeStatus = "unstable" if outcome.status is None else "unfinished"
            self.results.append(RangeResult(*names, status, error=outcome.error))
            return
        entry = self.library.add(net_range.key, author, self.hardware, judged.files, outcome)
        self.results.append(_result(net_range, entry))


def _result(net_range: NetRange, entry: PassEntry) -> RangeResult:
    """Return the result for a range from an entry of the library."""
    return RangeResult(
        net_range.key.fingerprint,
        net_range.key.ops,
        net_range.places,
        entry.author,
        entry.status,
        entry.reference_ms,
        entry.candidate_ms,
        entry.saved_ms,
        entry.speedup,
        entry.speedup_low,
        entry.speedup_high,
        entry.error,
        entry.digest,
    )


def best_disjoint(spans: Sequence[tuple[int, int, float]]) -> list[int]:
    """Return the numbers of disjoint spans (start, stop, saving) that save most, by position.

    Weighted interval scheduling by dynamic programming, which is exact. Spans that save nothing are
    left out, as are empty ones; of equal sums the one with fewer spans wins.

    Examples:
        >>> best_disjoint([(0, 4, 3.0), (0, 2, 2.0), (2, 4, 2.0), (5, 6, -1.0)])
        [1, 2]
        >>> best_disjoint([(0, 4, 4.0), (0, 2, 2.0), (2, 4, 2.0)])
        [0]
    """
    order = [n for n, (start, stop, saving) in enumerate(spans) if start < stop and saving > 0]
    order.sort(key=lambda number: spans[number][1])
    stops = [spans[number][1] for number in order]
    # best[count] is the most that the first spans save, how few take part, and which is the last
    best: list[tuple[float, int]] = [(0.0, 0)]
    before: list[int | None] = [None]
    for count, number in enumerate(order):
        start, _, saving = spans[number]
        earlier = bisect_right(stops, start, hi=count)
        saved, negative = best[earlier]
        extended = (saved + saving, negative - 1)
        is_better = extended > best[count]
        best.append(extended if is_better else best[count])
        before.append(earlier if is_better else None)
    numbers = []
    count = len(order)
    while count:
        earlier_count = before[count]
        if earlier_count is None:
            count -= 1
        else:
            numbers.append(order[count - 1])
            count = earlier_count
    return numbers[::-1]
