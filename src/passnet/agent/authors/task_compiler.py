"""The graphs of a task compiled in some way each, written as a pass folder and evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passnet.agent.attempt import VariantResult
from passnet.agent.authors.cpp_source import cpp_source
from passnet.agent.authors.folder_text import Written, pass_folder, pattern_text
from passnet.agent.authors.language import device_of
from passnet.agent.authors.launch_rules import Blocks
from passnet.agent.authors.lowered_ranges import GraphPieces, Options, Piece, Span
from passnet.agent.authors.triton_source import triton_source
from passnet.agent.files import Files
from passnet.agent.session import Session
from passnet.agent.tools import CheckMatch, Create, Delete, Evaluate
from passnet.errors import ActionError, AuthorError
from passnet.graph.device import retarget
from passnet.graph.spec import Graph
from passnet.mine.schedule import TargetDevice

ROUNDED: Options = (("emulate_precision_casts", True),)
"""Round between ops as eager torch does."""

SCALAR: Options = (("cpp.simdlen", 1),)
"""No vectors in the generated code: the C++ compiler vectorises loops itself."""

MAX_MEASURED = 3
"""How often a state is evaluated where the machine is too busy to measure all of its graphs."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the kernels of a graph are made.

    `spans` are those that are replaced, None for the largest. `pragmas` are lines at the top of
    the C++; `blocks` is what the launches of Triton are chosen from.
    """

    options: Options = ()
    spans: tuple[Span, ...] | None = None
    pragmas: tuple[str, ...] = ()
    blocks: Blocks = Blocks()


def ways_of(graph: Graph, device: TargetDevice = "cpu") -> tuple[Way, ...]:
    """The ways to make the kernels of a graph, in the order in which they are tried.

    In a low dtype first those that round as eager torch does; for CUDA in float32 too, last, as
    products and sums are then rounded apart.
    """
    is_low = any(item.dtype in ("bfloat16", "float16") for item in graph.tensors)
    if device == "cuda":
        return (Way(ROUNDED), Way()) if is_low else (Way(), Way(ROUNDED))
    if is_low:
        return (Way(ROUNDED), Way(), Way(ROUNDED + SCALAR), Way(SCALAR))
    return (Way(), Way(SCALAR))


def written_in(piece: Piece, way: Way) -> Written:
    """A piece with the source that computes it, in the language of its device."""
    if piece.code.device == "cpu":
        return Written(piece, cpp_source(piece.code, way.pragmas))
    source = triton_source(piece.code, way.blocks)
    return Written(piece, source.text, source.functions)


class TaskCompiler:
    """Compiles the graphs of a session's task, and writes and evaluates what comes of it.

    `ways` are those of the graphs as they are now; `dropped` the patterns that get no pass.

    Args:
        session: with the task.

    Raises:
        AuthorError: there is no language for the device, or shapes of a graph cannot be inferred.
    """

    def __init__(self, session: Session) -> None:
        settings = session._bench.settings
        self.device = device_of(settings.judge.device)
        self.session = session
        self.graphs = session.task.graphs
        self.num_threads = settings.num_threads
        graphs = [retarget(item.graph, settings.judge.device) for item in self.graphs]
        self.pieces = [
            GraphPieces(graph, item.name, self.device)
            for graph, item in zip(graphs, self.graphs, strict=True)
        ]
        self.ways = [ways_of(item.graph, self.device)[0] for item in self.graphs]
        self.dropped: frozenset[str] = frozenset()

    def spans(self, number: int) -> tuple[Span, ...]:
        """The spans of a graph that are replaced now."""
        way = self.ways[number]
        if way.spans is not None:
            return way.spans
        return self.pieces[number].largest(self._options(way))

    def written(self, number: int, way: Way) -> list[Written]:
        """The pieces of a graph in a way, with their source, but for those that cannot be made."""
        options = self._options(way)
        spans = self.pieces[number].largest(options) if way.spans is None else way.spans
        found = [self.pieces[number].piece(span, options) for span in spans]
        return [
            written_in(piece, way)
            for piece in found
            if piece is not None and pattern_text(piece.cut) not in self.dropped
        ]

    def _options(self, way: Way) -> Options:
        if self.device != "cpu":
            return way.options
        return tuple({"cpp.threads": self.num_threads, **dict(way.options)}.items())

    def evaluate(self, ways: Sequence[Way]) -> bool:
        """Write the folder of some ways, one for each graph, and have it judged.

        Returns:
            Whether there was anything to judge.

        Raises:
            AuthorError: what was generated fits no folder.
        """
        files = self._folder(ways)
        if not files:
            return False
        session = self.session
        session.turn += bool(session.evaluations)
        for name in [name for name in session.files if name not in files]:
            session.act(Delete(name))
        try:
            for name, text in files.items():
                if session.files.get(name) != text:
                    session.act(Create(name, text))
        except ActionError as cause:
            raise AuthorError(f"what was generated is too large for a folder: {cause}") from cause
        session.act(CheckMatch())
        session.act(Evaluate())
        return True

    def is_written(self, ways: Sequence[Way]) -> bool:
        """Whether the folder is that of some ways."""
        return self.session.files == self._folder(ways)

    def _folder(self, ways: Sequence[Way]) -> Files:
        written = [item for number, way in enumerate(ways) for item in self.written(number, way)]
        return pass_folder(written) if written else {}

    def results(self) -> list[VariantResult]:
        """How each graph did in the last evaluation, in their order."""
        found = {item.graph: item for item in self.session.evaluations[-1].variants}
        return [found[item.name] for item in self.graphs]

    def failing(self) -> list[int]:
        """The numbers of the graphs that were measured in the last evaluation and not correct."""
        return [
            number
            for number, item in enumerate(self.results())
            if not item.is_correct and item.status != "unstable"
        ]

    def make_correct(self) -> None:
        """Evaluate, and give the graphs that fail their next way, until none does.

        Raises:
            AuthorError: there is nothing to compile.
        """
        rungs = [0] * len(self.graphs)
        num_measured = 0
        while True:
            if not self.evaluate(self.ways):
                reasons = [text for item in self.pieces for text in item.refused.values()]
                raise AuthorError(
                    f"task {self.session.task.name}: Inductor computes no op of it in a kernel of "
                    f"its own, so there is nothing to write{f' ({reasons[-1]})' if reasons else ''}"
                )
            num_measured += 1
            failing = self.failing()
            moved = [number for number in failing if self._climb(number, rungs)]
            is_busy = any(item.status == "unstable" for item in self.results())
            if moved:
                num_measured = 0
            elif not is_busy or num_measured == MAX_MEASURED:
                break
        self._drop_wrong()

    def _climb(self, number: int, rungs: list[int]) -> bool:
        """Give a graph its next way, if there is one."""
        ways = ways_of(self.graphs[number].graph, self.device)
        if rungs[number] + 1 >= len(ways):
            return False
        rungs[number] += 1
        self.ways[number] = ways[rungs[number]]
        return True

    def _drop_wrong(self) -> None:
        """Leave out passes, one by one, where that makes a graph correct."""
        failing = self.failing()
        for number in failing:
            for pattern in self._patterns(number):
                before = self.dropped
                self.dropped = before | {pattern}
                is_left = all(self._patterns(other) for other in range(len(self.graphs)))
                if is_left and self.evaluate(self.ways) and len(self.failing()) < len(failing):
                    failing = self.failing()
                else:
                    self.dropped = before

    def _patterns(self, number: int) -> list[str]:
        return [pattern_text(item.piece.cut) for item in self.written(number, self.ways[number])]
