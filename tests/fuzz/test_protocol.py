"""Whatever a worker says, and wherever its outputs claim to lie: a failure of it, or values."""

from __future__ import annotations

import gc
import json
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from passnet.errors import WorkerError
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import Candidate
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.channel import MAX_REPLY_BYTES, channel_pair
from passnet.judge.protocol.messages import (
    MAX_NAME,
    MAX_SENTENCE,
    Disarmed,
    Failed,
    Fetched,
    Loaded,
    MatchesChecked,
    MissText,
    Observed,
    OutputForm,
    Profiled,
    Ran,
    Ready,
    Spawned,
    WorkerEnded,
    WorkerLimits,
)
from passnet.judge.settings import JudgeSettings
from passnet.judge.timing.measurement_findings import torch_findings
from passnet.judge.timing.probes import (
    as_arrays,
    compare_places,
    draw_places,
    read_places,
    read_whole,
    shared,
)
from passnet.judge.verdict.compare import compare_forms, compare_values
from tests.fuzz.hostile import fuzz
from tests.judge.fake_worker import HEADER, NUM_UNREAD, FakeParent, framed
from tests.judge.folders import small_graph

SHAPE = (6, 8)
MEMORY = 2**26
"""What the judge may map beyond what it has, whatever is said; every message fits many times."""

GROWTH = 2**21
"""What the allocator may keep, however many messages there were; of 100,000 and more 1.5 MB."""

GRAPH = small_graph(SHAPE).graph
PREPARED = prepare_graph(GRAPH, [make_inputs(GRAPH, "fresh", 0)])
CANDIDATE = Candidate("fuzzed", "passes", "/nowhere", "direct")
SETTINGS = JudgeSettings(limits=WorkerLimits(64), compile_timeout_s=5, call_timeout_s=5)

FORM = OutputForm("tensor", "float32", SHAPE, (8, 1), device="cpu")
EXPECTED = (FORM, OutputForm("number", "int", number="3"), FORM)
OUTPUT = np.ones(SHAPE, np.float32)
POINTERS = [OUTPUT.ctypes.data, 0, OUTPUT.ctypes.data]

MATCHES = (MissText("Fuse", 1), MissText("Other", 0, "no op matches"))
RAN = Ran(EXPECTED, MATCHES, 0.5, tuple(POINTERS), (POINTERS[0], 4096))
HONEST: tuple[Any, ...] = (
    Loaded(0.5),
    RAN,
    Fetched(),
    MatchesChecked(RAN.matches),
    Disarmed((Observed("Fuse", ("aten.add", "aten.relu"), False),)),
    Profiled(0.5, 0.25, 2.0),
)
"""What an honest worker says, in the order in which `judge` asks."""

FAILED = Failed("runtime_error", "ValueError", "no such thing")

NUMBERS = [
    -1, 0, 1, 7, 8, 48, 2**31, 2**40, 2**47, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63),
    10**30, 0.5, -0.5, 1e308, True, None,
]  # fmt: skip
TEXTS = [
    "", "nan", "-inf", "1e999", "9" * 399, "0x10", "float16", "bfloat16", "complex64", "float7",
    "cuda", "meta", "mps", "tensor", "number", "other", "\x1b[2J\x1b]0;owned\x07", "a\nb\r\x00",
    "[bold red]x[/]", "\u202eturned", "x" * 9000, "Ran", "Failed", "Loaded", "\ud7ff\U0001f600",
]  # fmt: skip
ANY = st.sampled_from([*NUMBERS, *TEXTS, [], {}, [[]], [{}], [-1, 1], [1, -8], [8], [8, 1, 1]])
MORE = st.sampled_from([2, 64, 3000])


@st.composite
def changed(draw: st.DrawFn, message: Any) -> Any:
    """A message as JSON, with one to three of its values replaced, left out, or repeated."""
    text = msgspec.to_builtins(message)
    for _ in range(draw(st.integers(1, 3))):
        place = text
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list, tuple)) and draw(st.integers(0, 3)):
                place[key] = dict(place[key]) if isinstance(place[key], dict) else [*place[key]]
                place = place[key]
                continue
            kind = draw(st.integers(0, 9))
            if kind == 0:
                del place[key]
            elif kind == 1 and isinstance(place, list):
                place *= draw(MORE)
            elif kind == 2 and isinstance(place, list):
                place.append(place[key])
            elif kind == 3 and isinstance(place, list):
                place.reverse()
            else:
                place[key] = draw(ANY)
            break
    return text


STEPS = st.sampled_from([8, 1, 0, -8, -1, 16, 2**16, 2**21, 2**31, 2**46, 2**47, 2**62, 2**63])
FORMS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["tensor"] * 6 + ["number", "other"]),
        "dtype": st.sampled_from(["float32"] * 6 + ["bfloat16", "complex128", "float8"]),
        "shape": st.sampled_from([SHAPE] * 6 + [(), (0, 8), (2**20, 2**20), (2**40, 2**40), (48,)]),
        "stride": st.tuples(STEPS, st.just(1) | STEPS) | st.lists(STEPS, max_size=40),
        "device": st.sampled_from(["cpu"] * 6 + ["cuda", "tpu"]),
    }
)
"""Forms that are near enough to that of the reference to be looked at; strides are not."""


@st.composite
def malformed(draw: st.DrawFn, message: Any) -> bytes:
    """What a worker says in place of a message: another one, a changed one, or no JSON at all."""
    kind = draw(st.integers(0, 11))
    if kind == 0:
        return draw(st.binary(max_size=40))
    if kind == 1:
        return framed(draw(st.binary(max_size=40)))
    if kind == 2:
        return framed(draw(st.sampled_from([*HONEST, FAILED])))
    if kind == 3:
        return HEADER.pack(draw(st.sampled_from([0, 1, MAX_REPLY_BYTES, 2**27, 2**63, 2**64 - 1])))
    if message is RAN and draw(st.booleans()):
        text = msgspec.to_builtins(RAN)
        text["outputs"] = [draw(FORMS), *text["outputs"][1:]]
    else:
        text = draw(changed(message))
    payload = bytearray(json.dumps(text).encode())
    if kind == 4:
        for _ in range(draw(st.integers(1, 4))):
            payload[draw(st.integers(0, len(payload) - 1))] = draw(st.integers(0, 255))
    elif kind == 5:
        del payload[draw(st.integers(0, len(payload) - 1)) :]
    elif kind == 6:
        payload[-1:] = b',"more":' + b"[" * 9_000
    elif kind == 7:
        payload = payload.replace(
            b"0.5", draw(st.sampled_from([b"NaN", b"1e999", b"-1e-9", b"9" * 99]))
        )
    return framed(bytes(payload[:NUM_UNREAD]))


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[bytes], int]:
    """What a worker says in all, one of it malformed, and how many descriptors come with each."""
    number = draw(st.sampled_from([1, 1, 1, *range(len(HONEST))]))
    words = [framed(message) for message in HONEST]
    words[number] = draw(malformed(HONEST[number]))
    return words, draw(st.sampled_from([0, 0, 0, 1, 4, 9]))


ADDRESSES = st.sampled_from(
    [*POINTERS, -1, 1, 2**47, 2**63 - 1, -(2**63), OUTPUT.ctypes.data + 2**40]
)


def judge(words: list[bytes], fds: int = 0, pointers: list[int] = POINTERS) -> str:
    """All that the judge does with what a worker says and where its outputs lie, in short; "ok"."""
    parent = FakeParent(words, [0] * fds)
    try:
        with little_memory(), LoadedWorker(parent, PREPARED, CANDIDATE, SETTINGS) as loaded:  # type: ignore[arg-type]
            forms = loaded.run(0)
            comparison = compare_forms(forms, EXPECTED)
            if comparison.status != "ok":
                return comparison.status
            outputs = loaded.outcome(forms, 0).outputs
            compare_values(forms, EXPECTED, outputs, outputs)
            matches = loaded.worker.receive(MatchesChecked, 5).matches
            observed = loaded.worker.receive(Disarmed, 5).observed
            torch_findings(observed, "strict")
            loaded.worker.receive(Profiled, 5)
            look_at(loaded, pointers)
            names = [*(match.name for match in matches), *(use.name for use in observed)]
            assert all(name.isprintable() and len(name) <= MAX_NAME for name in names)
    except WorkerFailureError as failure:
        assert str(failure).isprintable() and len(failure.text) <= MAX_SENTENCE
        return failure.status
    return "ok"


def look_at(loaded: LoadedWorker, pointers: list[int]) -> None:
    """All looks into the memory of a worker."""
    probes = draw_places(EXPECTED, np.random.default_rng(0))
    places = read_places(loaded.worker, pointers, loaded.forms, probes)
    compare_places(probes, places, places)
    whole = read_whole(loaded.worker, pointers, loaded.forms)
    arrays = as_arrays(whole, loaded.forms)
    compare_values(loaded.forms, EXPECTED, arrays, arrays)
    shared(pointers, loaded.forms, {0: range(POINTERS[0], POINTERS[0] + 64)})


@pytest.fixture(autouse=True)
def no_descriptor_stays() -> Iterator[None]:
    """Whatever was said, this process has as many open files as before."""
    judge([framed(message) for message in HONEST])  # what is imported on first use
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (the listing itself is one)
    yield
    gc.collect()  # a mapping that nobody looks at any more holds its descriptor
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def num_bytes(column: int) -> int:
    """What this process has mapped (0), or has in memory (1)."""
    statm = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(statm.split()[column]) * resource.getpagesize()


@contextmanager
def little_memory() -> Iterator[None]:
    """Within, this process can map `MEMORY` more than it has."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (num_bytes(0) + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_what_the_changes_start_from_is_an_honest_worker():
    assert judge([framed(message) for message in HONEST]) == "ok"


@fuzz(2500, conversations())
def test_malformed_messages_are_a_failure_of_the_worker(conversation: tuple[list[bytes], int]):
    judge(*conversation)


@fuzz(100, st.lists(ADDRESSES | st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3))
def test_outputs_that_lie_nowhere_are_a_failure_of_the_worker(pointers: list[int]):
    assert judge([framed(message) for message in HONEST], 0, pointers) in ("ok", "crash")


PIECES = [json.dumps(value).encode() for value in [*NUMBERS, *TEXTS[:-1], [], {}, [-1, 2**62]]]


def garbled(random: Random) -> list[bytes]:
    """What a worker says in all, with some bytes of one message cut out, doubled, or replaced."""
    words = [msgspec.json.encode(message) for message in HONEST]
    number = random.choice([1, 1, *range(len(HONEST))])
    for _ in range(random.randint(1, 4)):
        ends = [place for place, letter in enumerate(words[number]) if letter in b',:[]{}"']
        start, stop = sorted((random.choice(ends or [0]), random.choice(ends or [0])))
        piece = random.choice([b"", words[number][start:stop] * 2, random.choice(PIECES)])
        words[number] = words[number][: start + 1] + piece + words[number][stop:]
    return [framed(said[:NUM_UNREAD]) for said in words]


@pytest.mark.parametrize(
    "num_tries", [3000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["quick", "slow"]
)
def test_the_judge_keeps_nothing_of_what_was_said(num_tries: int):
    random = Random(0)
    for _ in range(1000):
        judge(garbled(random), random.choice([0, 4]))
    gc.collect()
    before = num_bytes(1)
    for _ in range(num_tries):
        judge(garbled(random), random.choice([0, 4]))
    gc.collect()
    grown = num_bytes(1) - before
    assert grown < GROWTH, grown


PARENT = (Ready("2.13", 0.5), Spawned(7), WorkerEnded(-9, 1))


@fuzz(100, st.sampled_from(PARENT).flatmap(malformed), st.sampled_from(PARENT), st.integers(0, 4))
def test_a_malformed_answer_of_the_parent_is_an_error_of_our_machinery(
    said: bytes, asked: Any, fds: int
):
    parent = WorkerParent()
    parent._channel, theirs = channel_pair()
    parent._received_fds = []
    with theirs:
        socket.send_fds(theirs, [said or b" "], [0] * fds)
        theirs.shutdown(socket.SHUT_WR)
        with suppress(WorkerError):
            parent._ask(None, type(asked), 5)
    for fd in parent._received_fds:
        os.close(fd)
    parent._channel.close()
