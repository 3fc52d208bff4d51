"""Rows of training data: a subgraph with its prompt and a teacher's answer."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.agent.authors.compiler import CompilePlan, compile_plans
from passnet.agent.trajectories.training_data import folder_text
from passnet.core.records.parquet import Format
from passnet.core.records.serialise import encode
from passnet.errors import AuthorError, InputError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Graph, main_float
from passnet.graph.text.render import render_program
from passnet.graph.values.effects import last_name
from passnet.passes.codegen.lowered_ranges import TRIMS
from passnet.passes.files import Files
from passnet_loops.data.mining import LIBRARY_CALLS
from passnet_loops.language.answer_text import print_answer
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.language import FusedRange
from passnet_loops.language.prompt import Prompt, loops_prompt
from passnet_loops.language.teacher import teacher_answer

JudgeVerdict: TypeAlias = Literal["correct", "wrong", "not judged"]

OWN_AUTHOR = "trained"
"""The author of a row that an LLM answered itself."""

MAX_ANSWER_WORDS = 400
MAX_PROMPT_WORDS = 400


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A subgraph and a teacher's answer to it."""

    full: str
    structure: str
    op_sequence: tuple[str, ...]
    num_ops: int
    dtype: str
    net: str
    program: str
    tensors: str
    author: str
    prompt: str
    loops: str
    folder: str
    """The pass folder as one text."""

    words: int
    """Words of prompt and loops."""

    verdict: JudgeVerdict = "not judged"
    """By the strict rules, untimed."""

    status: str = ""
    judge_s: float = 0.0


TRAINING: Format[TrainingRow] = Format(TrainingRow, "training data", hashes=("full", "structure"))


_MAX_WAIT = 10
"""Ratio of the limits of wall time and processor time."""


class _TimeIsUpError(Exception):
    pass


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the block with an AuthorError after this many seconds of processor time.

    The wall limit is ten times as long. Outside of the main thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise _TimeIsUpError

    timers = {
        signal.ITIMER_PROF: (signal.SIGPROF, seconds),
        signal.ITIMER_REAL: (signal.SIGALRM, _MAX_WAIT * seconds),
    }
    before = {number: signal.signal(number, stop) for number, _ in timers.values()}
    try:
        for timer, (_, limit) in timers.items():
            signal.setitimer(timer, limit)
        yield
    except _TimeIsUpError:
        raise AuthorError(f"took more than {seconds:.0f} s") from None
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def whole_or_ranges(prompt: Prompt, where: str) -> tuple[FusedRange, ...]:
    """Return the answer of the author `compiler`.

    Without a library call it tries the whole graph first, then without its ends.
    """
    [plan, *_] = compile_plans(prompt.graph)
    ops = prompt.graph.program.ops
    if not any(last_name(op.target) in LIBRARY_CALLS for op in ops):
        for front, back in ((0, 0), *TRIMS):
            if front + back < len(ops):
                spans = ((front, len(ops) - back),)
                with suppress(AuthorError):
                    return teacher_answer(prompt, where, CompilePlan(plan.options, spans))
    return teacher_answer(prompt, where, plan)


def make_row(graph: Graph, net: str, author: str = "compiler") -> tuple[TrainingRow, Files]:
    """Make the row of a graph, before it is judged, and its pass folder.

    Raises:
        AuthorError: The teacher writes nothing, or the loops language cannot express it.
        InputError: It is too long.
        GraphError: Its shapes cannot be inferred.
    """
    prompt = loops_prompt(graph)
    if len(prompt.text.split()) > MAX_PROMPT_WORDS:
        raise InputError("the prompt is too long")
    answer = print_answer(whole_or_ranges(prompt, "graph"))
    num_words = len(answer.split())
    if num_words > MAX_ANSWER_WORDS:
        raise InputError("the answer is too long")
    files = expand_answer(prompt, answer)
    prints = fingerprints(graph)
    assert prints.full is not None, "a cut graph has specs"
    row = TrainingRow(
        full=prints.full,
        structure=prints.structure,
        op_sequence=op_sequence(graph.program),
        num_ops=len(graph.program.ops),
        dtype=main_float(graph.tensors) or "none",
        net=net,
        program=render_program(graph.program),
        tensors=encode(graph.tensors).decode(),
        author=author,
        prompt=prompt.text,
        loops=answer,
        folder=folder_text(files),
        words=len(prompt.text.split()) + num_words,
    )
    return row, files
