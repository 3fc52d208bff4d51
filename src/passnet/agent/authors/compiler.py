"""The compiler as author: Inductor's kernels for the graphs of a task, as a pass folder.

Every op that Inductor computes in a kernel of its own is replaced, in the longest possible ranges;
ops that call a library stay. If the rules allow ops of torch, a graph that is only a product is
given to oneDNN, one of only calls of libraries and views is replaced by these calls, and products
of float16 are computed in float32 if the processor has no arithmetic in float16. Nothing is tuned.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from passnet.agent.attempts.attempt import VariantResult
from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import CheckMatch, Compare, Create, Delete, Evaluate, Submit
from passnet.errors import ActionError, AuthorError, CutError, GraphError
from passnet.graph.spec import Graph, retarget
from passnet.inductor.schedule import TargetDevice
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet.passes.codegen.kernel_text import device_of, kernel_text
from passnet.passes.codegen.library_calls import LibraryForm, library_form, library_passes
from passnet.passes.codegen.lowered_ranges import GraphLowering, LoweredRange, Options, Span
from passnet.passes.codegen.pass_text import pattern_text
from passnet.passes.codegen.products import float16_passes, is_slow_product, product_folder
from passnet.passes.codegen.triton_kernel import BlockSizes
from passnet.passes.files import Files
from passnet.passes.folder import LIST_FILE

ROUNDED: Options = (("emulate_precision_casts", True),)
"""Round between ops as eager torch does."""
SCALAR: Options = (("cpp.simdlen", 1),)
"""No vectors in the generated code: the C++ compiler vectorises loops itself."""
NOT_AT_ALL = 99
"""The level of a result that is wrong at every t, or missing."""
MOST_FOUND = 2
"""Wrong passes to look for in a folder; if there are more, all after the last are left out."""
MAX_MEASURED = 3
"""Most evaluations of a state while the machine is too busy to measure all of its graphs."""


@dataclass(frozen=True, slots=True)
class CompilePlan:
    """A graph's kernels: spans to replace (None: the largest), lines of C++, Triton's launches."""

    options: Options = ()
    spans: tuple[Span, ...] | None = None
    pragmas: tuple[str, ...] = ()
    blocks: BlockSizes = BlockSizes()


def compiler_author(session: Session, seed: int = 0, has_float16: bool | None = None) -> None:
    """Write Inductor's kernels, and submit.

    A graph with wrong results, or whose kernel does not compile, gets the next of its
    `compile_plans`; a pass that stays wrong is left out if another still matches. The seed is
    unused. Raises AuthorError if Inductor computes no op of the task in a kernel of its own.
    """
    files = product_files(session)
    if files:
        evaluate_files(session, files)
    else:
        TaskCompiler(session, has_float16).make_correct()
    session.act(Submit())


def product_files(session: Session) -> Files:
    """Return a folder of oneDNN products, if the task is only products and the rules allow it."""
    judge = session.evaluator.settings.judge
    if judge.rules != "open" or judge.device != "cpu":
        return {}
    return product_folder([graph.graph for graph in session.task.graphs])


def compile_plans(graph: Graph, device: TargetDevice = "cpu") -> tuple[CompilePlan, ...]:
    """Return the plans for the kernels of a graph, in the order of trials.

    In a low dtype, plans that round as eager torch does come first; for CUDA in float32 last.
    """
    is_low = any(spec.dtype in ("bfloat16", "float16") for spec in graph.tensors)
    plain, rounded = CompilePlan(), CompilePlan(ROUNDED)
    if device == "cuda":
        return (rounded, plain) if is_low else (plain, rounded)
    if is_low:
        return (rounded, plain, CompilePlan(ROUNDED + SCALAR), CompilePlan(SCALAR))
    return (plain, CompilePlan(SCALAR))


def range_source(lowered: LoweredRange, plan: CompilePlan) -> RangeSource:
    """Return a lowered range with its source, in the language of its device."""
    return RangeSource(lowered, *kernel_text(lowered.code, plan.pragmas, plan.blocks))


def evaluate_files(session: Session, files: Files, is_timed: bool = True) -> None:
    """Replace the session's folder by some files, and have it judged, or only compared."""
    session.turn += bool(session.evaluations)
    for name in [name for name in session.files if name not in files]:
        session.act(Delete(name))
    try:
        for name, text in files.items():
            if session.files.get(name) != text:
                session.act(Create(name, text))
    except ActionError as cause:
        raise AuthorError(f"the generated files are too large for a folder: {cause}") from cause
    session.act(CheckMatch())
    session.act(Evaluate() if is_timed else Compare())


class TaskCompiler:
    """Compiles the graphs of a session's task, and writes and evaluates the passes.

    `plans` are the graphs' present plans; `dropped` the patterns that get no pass. `has_float16`
    None asks this machine for arithmetic in float16. Raises AuthorError without a language for the
    device.
    """

    def __init__(self, session: Session, has_float16: bool | None = None) -> None:
        settings = session.evaluator.settings
        self.has_float16 = has_float16
        self.device = device_of(settings.judge.device)
        self.session = session
        self.graphs = session.task.graphs
        self.num_threads = settings.num_threads
        self.calls_libraries = settings.judge.rules == "open" and self.device == "cpu"
        self.lowerings = [
            GraphLowering(
                retarget(graph.graph, settings.judge.device),
                graph.name,
                self.device,
                session.first_op,
            )
            for graph in self.graphs
        ]
        self.plans = [compile_plans(graph.graph, self.device)[0] for graph in self.graphs]
        self.dropped: frozenset[str] = frozenset()
        self._next_plans = [
            list(compile_plans(graph.graph, self.device)[1:]) for graph in self.graphs
        ]
        self._reached: list[dict[CompilePlan, int]] = [{} for _ in self.graphs]
        self._judged: tuple[list[CompilePlan], frozenset[str], bool] | None = None

    def spans(self, number: int, plan: CompilePlan) -> tuple[Span, ...]:
        """Return the spans of a graph that a plan replaces."""
        if plan.spans is not None:
            return plan.spans
        return self.lowerings[number].largest(self._options(plan))

    def sources(self, number: int, plan: CompilePlan) -> list[RangeSource]:
        """Return the ranges of a graph by a plan, with sources, as far as they can be made."""
        lowering, options = self.lowerings[number], self._options(plan)
        ranges = [lowering.lowered(span, options) for span in self.spans(number, plan)]
        return [
            range_source(lowered, plan)
            for lowered in ranges
            if lowered is not None and pattern_text(lowered.cut) not in self.dropped
        ]

    def _options(self, plan: CompilePlan) -> Options:
        if self.device != "cpu":
            return plan.options
        return tuple({"cpp.threads": self.num_threads, **dict(plan.options)}.items())

    def folder(self, plans: Sequence[CompilePlan]) -> Files:
        """Return the pass folder of some plans, one for each graph; empty without passes."""
        sources = [
            source for number, plan in enumerate(plans) for source in self.sources(number, plan)
        ]
        files = pass_folder(sources, self.session.is_strided) if sources else {}
        cuts = [self._float16_products(number) for number in range(len(self.graphs))]
        calls = [
            form for form, products in zip(self.library_forms, cuts, strict=True) if not products
        ]
        passes = float16_passes(sum(cuts, [])) | library_passes(list(filter(None, calls)))
        if not passes:
            return files
        names = [*json.loads(files.get(LIST_FILE, "[]")), *(Path(name).stem for name in passes)]
        return {**files, **passes, LIST_FILE: json.dumps(names)}

    @cached_property
    def library_forms(self) -> list[LibraryForm | None]:
        """Return the graphs of only library calls, if the rules allow them; None for others."""
        forms: list[LibraryForm | None] = [None] * len(self.graphs)
        for number, (lowering, graph) in enumerate(zip(self.lowerings, self.graphs, strict=True)):
            if self.calls_libraries and lowering.is_library_only:
                with suppress(AuthorError, CutError, GraphError):
                    forms[number] = library_form(lowering.whole(), graph.name)
        return forms

    @cached_property
    def _slow_products(self) -> list[list[Graph]]:
        if not self.calls_libraries:
            return [[] for _ in self.graphs]
        is_slow = partial(is_slow_product, has_float16=self.has_float16)
        return [lowering.single_ops(is_slow) for lowering in self.lowerings]

    def _float16_products(self, number: int) -> list[Graph]:
        cuts = self._slow_products[number]
        return [cut for cut in cuts if pattern_text(cut) not in self.dropped]

    def evaluate(self, plans: Sequence[CompilePlan], is_timed: bool = True) -> bool:
        """Write the folder of some plans and have it judged or compared; False without passes."""
        files = self.folder(plans)
        if files:
            evaluate_files(self.session, files, is_timed)
        return bool(files)

    def results(self) -> list[VariantResult]:
        """Return the result of each graph in the last evaluation, in their order."""
        results = {result.graph: result for result in self.session.evaluations[-1].variants}
        return [results[graph.name] for graph in self.graphs]

    def failing(self) -> list[int]:
        """Return the numbers of the graphs that were wrong in the last evaluation."""
        return [
            number
            for number, result in enumerate(self.results())
            if not result.is_correct and result.status != "unstable"
        ]

    def make_correct(self) -> None:
        """Evaluate, and give failing graphs their next plan until none fails.

        Passes that stay wrong are left out. Graphs without a correct plan end with the nearest one.
        States on the way are compared and not timed. If a state that was correct then is wrong
        while it is timed, on more draws, the rest is timed too. Raises AuthorError without anything
        to compile.
        """
        if not self._measure():
            reasons = [text for graph in self.lowerings for text in graph.refused.values()]
            raise AuthorError(
                f"task {self.session.task.name}: Inductor computes no op of it in a kernel of "
                f"its own, so there is nothing to write{f' ({reasons[-1]})' if reasons else ''}"
            )
        for is_timed in (False, True):
            self._try_plans(is_timed)
            failing = self.failing()
            for number in list(failing):
                if number in failing:
                    failing = self._without_wrong(number, failing, is_timed)
            if self._judged == (self.plans, self.dropped, True):
                return
            self._measure()
            if set(self.failing()) <= set(failing):
                return

    def _measure(self) -> bool:
        for _ in range(MAX_MEASURED):
            if not self._judge(is_timed=True):
                return False
            if all(result.status != "unstable" for result in self.results()):
                break
        return True

    def _judge(self, is_timed: bool) -> bool:
        self._judged = (list(self.plans), self.dropped, is_timed)
        return self.evaluate(self.plans, is_timed)

    def _try_plans(self, is_timed: bool) -> None:
        """Give failing graphs their next plan, and in the end the nearest."""
        while True:
            for plan, levels, result in zip(self.plans, self._reached, self.results(), strict=True):
                level = NOT_AT_ALL if result.smallest_t is None else result.smallest_t
                levels[plan] = max(level, levels.get(plan, level))
            before = list(self.plans)
            for number in self.failing():
                levels, remaining = self._reached[number], self._next_plans[number]
                self.plans[number] = (
                    remaining.pop(0) if remaining else min(levels, key=levels.__getitem__)
                )
            if self.plans == before:
                return
            self._judge(is_timed)

    def _without_wrong(self, number: int, failing: list[int], is_timed: bool) -> list[int]:
        """Leave out passes of a graph if fewer graphs fail then; return the failing graphs."""
        before = self.dropped
        failing_without: dict[frozenset[str], list[int]] = {}

        def is_right_without(patterns: frozenset[str]) -> bool:
            self.dropped = before | patterns
            has_pass = all(
                self._patterns(index) or self.lowerings[index].is_library_only
                for index in range(len(self.graphs))
            )
            if not has_pass or not self._judge(is_timed):
                return False
            failing_without[patterns] = self.failing()
            return len(failing_without[patterns]) < len(failing)

        left_out = to_leave_out(self._patterns(number), is_right_without)
        self.dropped = before | (left_out or frozenset())
        return failing if left_out is None else failing_without[left_out]

    def _patterns(self, number: int) -> list[str]:
        sources = self.sources(number, self.plans[number])
        cuts = [*(source.lowered.cut for source in sources), *self._float16_products(number)]
        return list(dict.fromkeys(map(pattern_text, cuts)))


def to_leave_out(
    passes: Sequence[str], is_right_without: Callable[[frozenset[str]], bool]
) -> frozenset[str] | None:
    """Return passes without which a folder is right, few if there are few wrong ones; None if none
    are found.

    Args:
        passes: candidates: at least one is wrong, or more are wrong together.
        is_right_without: judges the folder without some of them. It is called about twice
            `MOST_FOUND` times the logarithm of their number.

    Examples:
        >>> sorted(to_leave_out("abcdefgh", lambda without: "f" in without))
        ['f']
        >>> sorted(to_leave_out("abcdefgh", lambda without: {"b", "f"} <= without))
        ['b', 'f']
        >>> sorted(to_leave_out("abcd", lambda without: len(without) > 1))  # two are too many
        ['c', 'd']
        >>> to_leave_out("abcd", lambda without: False) is None
        True
    """
    right: frozenset[str] | None = None
    wrong: frozenset[str] = frozenset()
    remaining = list(passes)
    while remaining and len(wrong) < MOST_FOUND:
        low, high = 0, len(remaining)  # the first `low` may stay, the first `high` may not
        while high - low > 1:
            middle = (low + high) // 2
            without = wrong | frozenset(remaining[middle:])
            if is_right_without(without):
                low, right = middle, without
            else:
                high = middle
        wrong |= {remaining[low]}
        if is_right_without(wrong):
            return wrong
        remaining = remaining[high:]
    return right
