"""The readers of strangers' files and bodies: how honest input is made, and what reads it."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from passnet.agent.attempts.attempt import read_attempts
from passnet.agent.trajectories.stats import summarise
from passnet.bench.run_record import TRIALS_FILE
from passnet.bench.scores import read_rows, score_rows
from passnet.core.hardware import Hardware
from passnet.core.records.serialise import decode, encode, pack_lines
from passnet.core.records.untrusted import untrusted_digest
from passnet.data.capture.store import GRAPHS, read_set, write_set
from passnet.data.dataset.store import SUBGRAPHS, read_dataset
from passnet.graph.canonical import fingerprints
from passnet.graph.text.files import GraphSample, graph_from_row, read_sample, write_sample
from passnet.graph.text.render import render_program
from passnet.judge.protocol.channel import Channel, ChannelClosedError, ChannelTimeoutError
from passnet.judge.protocol.messages import Failed, Loaded, Profiled, Ran
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import load_suite, row_of_graph
from passnet.pages.figures.study_page import StudyFigure, StudyPage, read_study, write_study_page
from passnet.pages.tables.tables import Table
from passnet.passes.files import read_files
from passnet.passes.folder import LIST_FILE, inspect_folder
from passnet.passes.library.entries import all_entries, entry_folder
from passnet.passes.library.foreign import foreign_orders
from passnet.passes.library.store import PassLibrary, PassOutcome, entry_range, range_key
from passnet.train.service.submission import JudgeReport, Submission
from passnet_service.jobs import check_graphs, judge_job, submission_id
from passnet_site.pages.measured import KnownSuites, read_run
from passnet_site.pages.table_spec import of_text_table
from tests.agent.attempts import SUITE, attempt
from tests.conftest import ROOT
from tests.data.dataset.rows import write as write_rows
from tests.judge.folders import GOOD, small_graph, write_passes
from tests.pages.site.runs import write_run


@dataclass(frozen=True)
class FuzzedReader:
    """A reader of a folder: how an honest one is made, read, and which of its files are changed.

    `refit` makes the rest of the folder fit the changed file, as an attacker would.
    """

    make: Callable[[Path], object]
    read: Callable[[Path], object]
    files: tuple[str, ...]
    refit: Callable[[Path], object] = lambda _: None


def make_suite_file(path: Path) -> None:
    shutil.copy(shipped_suites()["demo-small"], path / "suite.parquet")


def make_shard(path: Path) -> None:
    """Write a set of three captured graphs."""
    rows = GRAPHS.read(ROOT / "captures" / "graphs-002.parquet")
    write_set(path, [next(rows) for _ in range(3)], {"torch": ["2.13"]})


def fit_manifest(path: Path) -> None:
    """Let a manifest have the hashes of its files as they are."""
    for manifest in (path / "manifest.json", path / "dataset.json"):
        with suppress(ValueError, TypeError, KeyError, OSError, RecursionError):
            content = json.loads(manifest.read_bytes())
            for shard in content["shards"]:
                shard["sha256"] = untrusted_digest(path / shard["file"]).hex()
            manifest.write_text(json.dumps(content))


def read_shards(path: Path) -> None:
    for file in read_set(path)[1]:
        for row in GRAPHS.read(file):
            graph_from_row(row.program, row.tensors, "row")


def make_dataset(path: Path) -> None:
    path.rmdir()
    write_rows(path)


def read_subgraphs(path: Path) -> None:
    for file in read_dataset(path)[1]:
        for row in SUBGRAPHS.read(file):
            graph_from_row(row.program, row.tensors, "row")


def make_run(path: Path) -> None:
    """Write a run."""
    write_run(path / "run", SUITE)
    for file in (path / "run").iterdir():
        file.rename(path / file.name)


class OneSuite(KnownSuites):
    """The suite of the run alone: to look for another among all that are shipped takes seconds."""

    def __init__(self) -> None:
        super().__init__((SUITE,))
        self._unread = {}


def make_packed_run(path: Path) -> None:
    make_run(path)
    pack_lines(path / TRIALS_FILE)


def make_sample(path: Path) -> None:
    write_sample(path, GraphSample(small_graph().graph, {"framework": "torch"}))


def read_graph(path: Path) -> None:
    graph = read_sample(path).graph
    fingerprints(graph)
    render_program(graph.program)


def read_passes(path: Path) -> None:
    inspect_folder(path)
    read_files(path)


def make_messages(path: Path) -> None:
    """Write messages of a worker, one a line."""
    said = (Loaded(0.5), Profiled(0.5, 0.25, 2.0), Failed("runtime_error", "ValueError", "text"))
    (path / "messages").write_bytes(b"\n".join(map(msgspec.json.encode, said)))


def read_messages(path: Path) -> None:
    """Receive each message as the judge does, short enough for the buffer of a socket."""
    for payload in (path / "messages").read_bytes().split(b"\n")[:8]:
        ours, theirs = socket.socketpair()
        with ours, theirs, suppress(ChannelClosedError, ChannelTimeoutError):
            theirs.sendall(len(payload).to_bytes(8, "little") + payload[:100_000])
            theirs.shutdown(socket.SHUT_WR)
            Channel(ours, 2**22).receive(Loaded | Ran | Profiled | Failed, 5)


def make_body(path: Path) -> None:
    """Write a submission to the reward service."""
    files = {LIST_FILE: '["Fuse"]', "Fuse.py": GOOD}
    submission = Submission("add_relu", files, graphs=(row_of_graph(small_graph()),))
    (path / "body.json").write_bytes(encode(submission))


def read_body(path: Path) -> None:
    """Take a submission as the service does."""
    submission = decode((path / "body.json").read_bytes(), Submission, "submission")
    job = judge_job(submission, {"train": SUITE}, None)
    submission_id(job, "", submission.repeat)
    for rows in (job.graphs, job.unseen):
        check_graphs(rows)


def make_answer(path: Path) -> None:
    (path / "answer.json").write_bytes(encode(JudgeReport("id", "waiting", num_losses=1)))


def read_answer(path: Path) -> None:
    decode((path / "answer.json").read_bytes(), JudgeReport, "answer")


def make_library(path: Path) -> None:
    hardware = Hardware("cpu", "a processor", 1, "2.13")
    files = {LIST_FILE: '["Fuse"]', "Fuse.py": GOOD}
    result = PassOutcome("wins", None, 2.0, 1.9, 2.1, 1.0, 0.5)
    entry = PassLibrary(path).add(range_key(small_graph().graph), "a", hardware, files, result)
    shutil.copy(path / "passes" / entry.digest / "record.json", path / "record.json")


def put_record(path: Path) -> None:
    """Put a changed record in the place of the entry's."""
    [entry] = (path / "passes").iterdir()
    shutil.copy(path / "record.json", entry / "record.json")


def read_library(path: Path) -> None:
    for entry in all_entries(path):
        entry_range(entry)
        read_files(entry_folder(path, entry))


def read_foreign_library(path: Path) -> None:
    foreign_orders(path)


def make_study(path: Path) -> None:
    """Write a study with a table and a figure."""
    shutil.copy(ROOT / "captures" / "statistics.svg", path / "f.svg")
    table = Table("T", ("a", "b"), [("1", "2"), ("3", "4")])
    page = StudyPage("title", "finding", ("text",), (table,), (StudyFigure("f.svg", "x"),))
    write_study_page(path, page)


def draw_study(path: Path) -> None:
    study = read_study(path)
    for table in study.page.tables:
        of_text_table(table)
    for draw in study.drawings.values():
        draw(path / "drawn")


def make_attempts(path: Path) -> None:
    (path / "attempts.jsonl").write_bytes(encode(attempt()) + b"\n" + encode(attempt()) + b"\n")


READERS: dict[str, FuzzedReader] = {
    "suite": FuzzedReader(
        make_suite_file, lambda path: load_suite(str(path / "suite.parquet")), ("suite.parquet",)
    ),
    "shard": FuzzedReader(
        make_shard, read_shards, ("graphs-000.parquet", "manifest.json"), fit_manifest
    ),
    "dataset": FuzzedReader(
        make_dataset, read_subgraphs, ("subgraphs-000.parquet", "dataset.json"), fit_manifest
    ),
    "records": FuzzedReader(make_run, lambda path: score_rows(read_rows(path)), (TRIALS_FILE,)),
    "packed records": FuzzedReader(
        make_packed_run, lambda path: score_rows(read_rows(path)), (f"{TRIALS_FILE}.gz",)
    ),
    "run": FuzzedReader(
        make_run, lambda path: read_run(path, OneSuite()), ("run.json", TRIALS_FILE)
    ),
    "graph folder": FuzzedReader(
        make_sample, read_graph, ("model.py", "weight_meta.py", "graph_net.json")
    ),
    "pass folder": FuzzedReader(
        lambda path: write_passes(path, GOOD), read_passes, (LIST_FILE, "Fuse.py")
    ),
    "messages": FuzzedReader(make_messages, read_messages, ("messages",)),
    "service body": FuzzedReader(make_body, read_body, ("body.json",)),
    "service answer": FuzzedReader(make_answer, read_answer, ("answer.json",)),
    "library": FuzzedReader(make_library, read_library, ("record.json",), put_record),
    "foreign library": FuzzedReader(
        make_library, read_foreign_library, ("record.json",), put_record
    ),
    "study": FuzzedReader(make_study, draw_study, ("study.json", "f.svg")),
    "attempts": FuzzedReader(
        make_attempts, lambda path: summarise(read_attempts([path])), ("attempts.jsonl",)
    ),
}
