"""What a command says where the machine refuses it something: one sentence, and an exit code."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.agent.attempts.attempt import ATTEMPTS_FILE
from passnet.cli import main
from passnet.core.records.serialise import LineWriter
from passnet.data.capture.record import NetRecord
from passnet.data.capture.run import RECORDS_FILE, graphs_path
from passnet.data.capture.store import GRAPHS
from passnet.graph.text.files import GraphSample, write_sample
from passnet.judge.suite.suite import write_suite
from passnet.passes.folder import LIST_FILE
from tests.agent.attempts import SUITE, attempt
from tests.bench.runs import QUICK, command, lines, write_small_suite
from tests.data.dataset.rows import write
from tests.data.dataset.test_build import TWO, captured
from tests.faults import MarkedRuns, enlarge, limited_files, small_disk
from tests.judge.folders import small_graph
from tests.processes import wait_until

NET = """
import torch

def make():
    return torch.nn.ReLU(), (torch.ones(2, 4),)

def other():
    return torch.nn.Linear(4, 4), (torch.ones(2, 4),)
"""

COMMANDS = {
    "extract": ("extract", "{in}/net.py:make", "--out", "{out}"),
    "dataset build": ("dataset", "build", "{in}/set", "--out", "{out}"),
    "dataset merge": ("dataset", "merge", "{in}/run", "--out", "{out}"),
    "dataset sample": ("dataset", "sample", "{in}/set", "--out", "{out}"),
    "dataset split": ("dataset", "split", "{in}/data", "--out", "{out}"),
    "dataset export graphnet": (
        "dataset", "export", "{in}/data", "--layout", "graphnet", "--out", "{out}"),
    "dataset export passnet": (
        "dataset", "export", "{in}/data", "--layout", "passnet", "--out", "{out}"),
    "dataset export hf": ("dataset", "export", "{in}/data", "--layout", "hf", "--out", "{out}"),
    "dataset import": ("dataset", "import", "{in}/graphs", "--out", "{out}"),
    "dataset stats": ("dataset", "stats", "{in}/data", "--page", "{out}/page.md"),
    "suite make": (
        "suite", "make", "{in}/data", "--out", "{out}/made.parquet", "--tasks", "1"),
    "suite show": ("suite", "show", "{in}/train.parquet", "--svg", "{out}"),
    "bench run": (
        "bench", "run", "--suite", "{in}/train.parquet", "--candidate", "eager", "--out", "{out}"),
    "agent run": (
        "agent", "run", "--suite", "{in}/train.parquet", "--author", "compiler", "--out", "{out}"),
    "agent stats": ("agent", "stats", "{in}/run", "--figure", "{out}/figure.svg"),
    "agent export": (
        "agent", "export", "{in}/run", "--suite", "{in}/train.parquet",
        "--out", "{out}/chats.jsonl"),
}  # fmt: skip
"""Every command that writes, with where it reads and where it writes."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "net.py").write_text(NET)
    captured(folder / "set")
    write(folder / "data")
    write_sample(folder / "graphs" / "a", GraphSample(small_graph().graph, {"framework": "torch"}))
    write_suite(folder / "train.parquet", SUITE)
    run = folder / "run"
    graphs_path(run, "lib/one").parent.mkdir(parents=True)
    GRAPHS.write(graphs_path(run, "lib/one"), TWO)
    for name, record in (
        (RECORDS_FILE, NetRecord("lib/one", "captured")),
        (ATTEMPTS_FILE, attempt()),
    ):
        with LineWriter(run / name) as writer:
            writer.write(record)
    return folder


@contextmanager
def file_in_place(folder: Path) -> Iterator[Path]:
    (folder / "file").write_text("")
    yield folder / "file" / "out"


@contextmanager
def too_large(folder: Path) -> Iterator[Path]:
    (folder / "out").mkdir()
    with limited_files(0):
        yield folder / "out"


@contextmanager
def full(folder: Path) -> Iterator[Path]:
    with small_disk(folder / "disk", "4k") as disk:
        (disk / "out").mkdir()
        (disk / "filler").write_bytes(bytes(4096))
        yield disk / "out"


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    with small_disk(folder / "disk", "4k") as disk:
        (disk / "out").mkdir()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        yield disk / "out"


FAULTS = {
    "a file in the place of a folder": (file_in_place, "Not a directory"),
    "a limit of files": (too_large, "File too large"),
    "a full disk": (full, "No space left on device"),
    "a read-only disk": (read_only, "Read-only file system"),
}

ASKING = (
    "dataset split",
    "dataset stats",
    *(f"dataset export {to}" for to in ("graphnet", "passnet", "hf")),
)
"""Commands that put a question to a dataset first, to a process that may then write no answer."""


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", COMMANDS)
def test_where_nothing_can_be_written_it_is_one_sentence(
    name: str, fault: str, inputs: Path, tmp_path: Path
) -> None:
    """For every command that writes."""
    break_it, reason = FAULTS[fault]
    with break_it(tmp_path) as out:
        words = [word.format(**{"in": inputs, "out": out}) for word in COMMANDS[name]]
        done = CliRunner().invoke(main, words)
    assert isinstance(done.exception, SystemExit), done.exception
    [sentence] = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    if fault == "a limit of files" and name in ASKING:
        assert done.exit_code == 1 and "a job cannot write its results there" in sentence
        return
    assert done.exit_code == 2, done.output
    assert sentence.startswith("passnet: ") and reason in sentence and str(out) in sentence


RUNS = {
    "extract": ("nets.jsonl", 2, "captured nets", 28),
    "bench run": ("trials.jsonl", 4, "trials", 12),
    "agent run": ("attempts.jsonl", 1, "attempts", 20),
}
"""Of long runs: the file of records, how many there are in the end, and a disk in KiB that is too
small for them; for the agent's, too small for the passes of its attempt."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_disk_that_fills_up_loses_nothing_and_leaves_no_process(
    name: str, inputs: Path, tmp_path: Path
) -> None:
    file, num_records, holds, kib = RUNS[name]
    runs = MarkedRuns(tmp_path)
    more = {
        "extract": (f"{inputs / 'net.py'}:other", "--jobs", 1),
        "bench run": ("--candidate", "null", *QUICK),
        "agent run": ("--task", "add_relu", *QUICK),
    }
    with small_disk(tmp_path / "disk", f"{kib}k") as disk:
        suite = write_small_suite(tmp_path / "train.parquet", 1)
        words = [word.format(**{"in": inputs, "out": disk / "out"}) for word in COMMANDS[name]]
        words = [str(suite) if word.endswith("train.parquet") else word for word in words]
        refused = runs.run(command(*words, *more[name]))
        assert refused.returncode == 2, refused.stderr
        [sentence] = [line for line in refused.stderr.splitlines() if not line.startswith("note: ")]
        assert sentence.startswith("passnet: ") and "No space left on device" in sentence
        kept = [json.loads(line) for line in (disk / "out" / file).read_text().splitlines()]
        assert f"; {len(kept)} {holds} are safe in {disk / 'out'}, go on with --resume" in sentence
        assert len(kept) < num_records or name == "agent run"
        assert not runs.left()
        enlarge(disk, "10m")
        resumed = runs.run(command(*words, *more[name], "--resume"))
        assert resumed.returncode == 0, resumed.stderr
        after = [json.loads(line) for line in (disk / "out" / file).read_text().splitlines()]
        assert after[: len(kept)] == kept and len(after) == num_records
        if name == "agent run":
            assert (disk / "out" / "passes" / "add_relu" / LIST_FILE).exists()


@pytest.mark.slow
def test_a_full_cache_of_inductor_is_named_in_its_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, out = write_small_suite(tmp_path / "train.parquet", 1), tmp_path / "out"
    words = command("bench", "run", "--suite", suite, "--out", out, *QUICK)
    for name in ("inductor@direct", "inductor@guarded", "inductor"):
        words += ["--candidate", name]
    with small_disk(tmp_path / "disk", "64k") as disk:
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(disk))
        done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 1, done.stderr
        for trial in lines(out):
            assert trial["status"] == "runtime_error"
            assert trial["error"].endswith(
                f": {disk}: No space left on device; make room on the disk"
            )


@pytest.mark.slow
def test_logs_of_inspect_that_do_not_fit_are_named(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    out = tmp_path / "out"
    out.mkdir()
    words = command("agent", "run", "--suite", "demo-small", "--task", "gelu_tanh", "--out", out,
                    "--llm", "scripted", *QUICK)  # fmt: skip
    with small_disk(out / "logs", "4k") as logs:
        done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2, done.stderr
    sentence = done.stderr.splitlines()[-1]
    assert f"passnet: {logs}: No space left on device; make room on the disk" in sentence
    assert f"are safe in {out}, go on with --resume" in sentence


@pytest.mark.parametrize("words", [("suite", "list"), ("suite", "list", "--json"), ("--help",)])
def test_output_that_cannot_be_written_is_one_sentence_and_one_nobody_reads_is_none(
    words: tuple[str, ...],
) -> None:
    with Path("/dev/full").open("w") as nowhere:
        done = subprocess.run(
            command(*words), stdout=nowhere, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "passnet: No space left on device; make room on the disk\n"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            command(*words), stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_a_second_run_in_one_folder_is_told_of_the_first(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "train.parquet")
    words = command(*("bench", "run", "--suite", suite, "--candidate", "eager", *QUICK))
    words += ["--out", str(tmp_path / "run")]
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    wait_until((tmp_path / "run" / "run.json").exists, "the first run does not begin", 60)
    second = subprocess.run([*words, "--resume"], capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert f"run: in use by process {first.pid} on " in second.stderr
    assert first.wait() == 0 and len(lines(tmp_path / "run")) == 5
