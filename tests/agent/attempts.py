"""Attempts made by hand, at the tasks of a small suite."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.agent.attempts.attempt import (
    Attempt,
    Evaluation,
    Message,
    ToolCall,
    ToolTime,
    VariantResult,
)
from passnet.agent.trajectories.selection import Filters, Selection, TrainingForm, select
from passnet.bench.environment import Environment
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.data.dataset.splits import SuiteKeys
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.task import TaskGraph
from passnet.passes.folder import LIST_FILE
from tests.graph.programs import graph_of, program_of
from tests.judge.folders import PATTERN

MACHINE = Environment("3.11", "2.13", "0.1.0", "Linux", "cpu", 2, 4096, "g++", 0.0)


def small_suite(name: str = "train") -> Suite:
    """A suite with the tasks `relu` and `tanh`."""
    programs = {
        "relu": program_of("x = torch.relu(a)", "y = x + b", returns="(y,)"),
        "tanh": program_of("x = torch.tanh(a)", "y = x * b", returns="(y,)"),
    }
    graphs = [
        TaskGraph(task, f"{task}-{number}", graph_of(program, (8, number + 1)))
        for task, program in programs.items()
        for number in range(2)
    ]
    return make_suite(name, graphs)


SUITE = small_suite()


def folder(body: str = "def replacement(x, y):\n    return x + y\n") -> dict[str, str]:
    """A pass folder with one pass."""
    return {LIST_FILE: '["Fuse"]', "Fuse.py": PATTERN + body}


def evaluation(
    turn: int, score: float | None, *, passing: bool = True, findings: tuple[str, ...] = (), **files
) -> Evaluation:
    """An evaluation of a folder on one graph, which without a score was not timed."""
    status = "cheat" if findings else "unstable" if score is None else "ok"
    level = -5 if passing and not findings else None
    graph = VariantResult("relu-0", status, level, score, score, score, None, {}, findings)
    return Evaluation(turn, files or folder(), (graph,), score, 1.0, 0.1)


def call(tool: str, number: int, /, **arguments) -> ToolCall:
    """A call of a tool."""
    return ToolCall(f"call_{number}", tool, json.dumps(arguments))


def turn(number: int, tool: str, /, **arguments) -> tuple[Message, Message]:
    """Return an author's message and the answer to it."""
    tool_call = call(tool, number, **arguments)
    return (
        Message("assistant", "", (tool_call,)),
        Message("tool", f"answer to {tool}", tool_call_id=tool_call.id),
    )


def chat(*tools: str, note: str = "") -> tuple[Message, ...]:
    """Return a chat of calls of one tool after the other."""
    arguments = {"create": {"name": "Fuse.py", "text": "x = 1\n"}, "show_graph": {"graph": 0}}
    start = (Message("system", "You write passes."), Message("user", f"Task relu. {note}"))
    turns = [turn(number, tool, **arguments.get(tool, {})) for number, tool in enumerate(tools)]
    return (*start, *(message for pair in turns for message in pair))


CHAT = chat("create", "evaluate", "submit")

ATTEMPT = Attempt(
    schema_version=SCHEMA_VERSION,
    task="relu",
    suite=SUITE.name,
    suite_hash=SUITE.content_hash,
    author="llm",
    llm="open/one",
    seed=0,
    number=0,
    messages=CHAT,
    evaluations=(evaluation(2, 1.5),),
    best=0,
    score=1.5,
    final_score=1.4,
    ending="submitted",
    settings=RunSettings(),
    environment=MACHINE,
    versions={"passnet": "0.1.0"},
    started="2026-01-01T00:00:00+00:00",
    seconds=10.0,
    num_turns=3,
    tool_times=(ToolTime(1, "Create", 0.001, 0.001), ToolTime(2, "Evaluate", 1.0, 0.1)),
)
"""One that was honest and won."""


def attempt(**changes) -> Attempt:
    """That attempt with some of its fields changed."""
    return replace(ATTEMPT, **changes)


def different(number: int, **changes) -> Attempt:
    """Another attempt by the same author, with other code and another chat."""
    files = folder(f"def replacement(x, y):\n    return x + y + {number}\n")
    fields = {
        "number": number,
        "messages": chat("create", "evaluate", "submit", note=str(number)),
        "evaluations": (evaluation(2, 1.5, **files),),
    }
    return attempt(**{**fields, **changes})


def selection(*attempts: Attempt, form: TrainingForm = "chat") -> Selection:
    """Attempts to learn from, with nothing to keep apart."""
    return select(attempts, [SUITE], SuiteKeys({}, {}, {}), Filters(), form)


def load_rows(path: Path, tmp_path: Path) -> Any:
    """The rows of a file as a trainer reads them."""
    datasets = pytest.importorskip("datasets")
    return datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
