"""Training data by rejection sampling: subgraphs mined, answered by a teacher, and judged.

Rows are made graph by graph and judged one by one; what is done is kept as it comes, and a run that
was killed goes on. What may be learned from is the part that the judge finds correct, balanced over
op sequences and apart from every suite of evaluation.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from passnet.core.jobs.actors import results_of
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.records.parquet import Shard, check_shards, write_shards
from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.data.capture.store import GRAPHS, GraphRow, read_set
from passnet.data.dataset.splits import RowKeys, SuiteKeys, leaks
from passnet.data.mine.dtypes import in_dtype
from passnet.errors import AuthorError, GraphError, InputError, PassnetError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Graph, main_float
from passnet.graph.text.files import graph_from_row
from passnet.graph.text.syntax import gc_paused
from passnet_loops.examples import TRAINING, JudgeVerdict, TrainingRow, make_row, time_limit
from passnet_loops.mining import windows

INFO_FILE = "data.json"
MADE_FILE = "made.jsonl"
VERDICTS_FILE = "verdicts.jsonl"
SHARD_NAME = "training"
MANIFEST_FILE = "training.json"

ROW_LIMIT_S = 20.0
"""Seconds that a teacher may take for a subgraph."""

DTYPES = ("float32", "float32", "bfloat16", "float16")
"""In what dtypes subgraphs are made, as often as they stand here."""


@dataclass(frozen=True, slots=True)
class DataSettings:
    """How training data is made.

    Args:
        num_structures: after how many different structures mining ends.
        max_per_sequence: the most structures of one op sequence that are kept.
        max_windows: the most subgraphs of one captured graph.
        shard: the part of the captured graphs, from 1, and of how many.
    """

    num_structures: int = 6000
    max_per_sequence: int = 8
    max_windows: int = 60
    shard: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class DataInfo:
    """What a run was begun with; `evaluation` has the content hash of each suite of evaluation."""

    schema_version: int
    source: str
    evaluation: dict[str, str]
    settings: DataSettings


@dataclass(frozen=True, slots=True)
class MadeRows:
    """What came of one captured graph: rows, and how often which kind of refusal."""

    graph: str
    rows: tuple[TrainingRow, ...]
    refused: dict[str, int]


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """What the judge said of a row, by its key."""

    key: str
    verdict: JudgeVerdict
    status: str
    judge_s: float


@dataclass(frozen=True, slots=True)
class TrainingManifest:
    """What training data holds, and what was left out for which reason.

    `evaluation` has the content hash of every suite that it was checked against, `judged_from` the
    SHA-256 of each file that the data had before rows of it were judged.
    """

    schema_version: int
    num_rows: int
    num_structures: int
    num_op_sequences: int
    verdicts: dict[str, int]
    dtypes: dict[str, int]
    left_out: dict[str, int]
    evaluation: dict[str, str]
    shards: tuple[Shard, ...]
    judged_from: tuple[str, ...] = ()

    @property
    def file_hashes(self) -> tuple[str, ...]:
        """The SHA-256 of each file of the data."""
        return tuple(shard.sha256 for shard in self.shards)

    def was_learned(self, data: Collection[str]) -> bool:
        """Whether an llm that learned from files of these hashes learned from this data, or from
        what it was before it was judged.
        """
        return not set(data).isdisjoint((*self.file_hashes, *self.judged_from))


def row_key(row: TrainingRow) -> str:
    """What makes it one row: its subgraph and its author."""
    return f"{row.full[:24]}-{row.author}"


def make_rows(
    row: GraphRow, settings: DataSettings, evaluation: SuiteKeys, known: set[str]
) -> MadeRows:
    """The rows of one captured graph; structures that are `known`, to which new ones are added, or
    of evaluation are passed over.
    """
    rows: list[TrainingRow] = []
    refused: Counter[str] = Counter()
    try:
        graph = graph_from_row(row.program, row.tensors, row.full[:16])
        with time_limit(2 * ROW_LIMIT_S):
            subgraphs = list(windows(graph, row.full, settings.max_windows))
    except (GraphError, AuthorError, InputError):
        return MadeRows(row.full, (), {"graph": 1})
    for subgraph in subgraphs:
        structure, ops = fingerprints(subgraph).structure, op_sequence(subgraph.program)
        if structure in known:
            refused["known structure"] += 1
        elif structure in evaluation.structures or ops in evaluation.sequences:
            refused["of evaluation"] += 1
        else:
            known.add(structure)
            try:
                with time_limit(ROW_LIMIT_S), gc_paused():
                    made = make_row(_in_some_dtype(subgraph, structure), row.sources[0].entry)
                rows.append(made[0])
            except (PassnetError, RecursionError) as cause:
                refused[type(cause).__name__] += 1
    return MadeRows(row.full, tuple(rows), dict(refused))


def _in_some_dtype(graph: Graph, structure: str) -> Graph:
    """A subgraph as it was captured, or in a low dtype, as its structure draws it."""
    dtype = DTYPES[int(structure[:8], 16) % len(DTYPES)]
    return graph if main_float(graph.tensors) in (dtype, None) else in_dtype(graph, dtype)


def data_run(out: Path) -> RunFolder[DataInfo, MadeRows, str]:
    """The folder of a run, by captured graphs."""
    graph = attrgetter("graph")
    return RunFolder(out, INFO_FILE, DataInfo, MADE_FILE, MadeRows, graph, "mined graphs")


def verdict_run(out: Path) -> RunFolder[DataInfo, RowVerdict, str]:
    """The same folder, by rows that were judged; the run of mined graphs has its lock."""
    return RunFolder(
        out, INFO_FILE, DataInfo, VERDICTS_FILE, RowVerdict, attrgetter("key"), "judged rows"
    )


def captured_graphs(folder: Path, shard: tuple[int, int]) -> list[GraphRow]:
    """The captured graphs of a folder that belong to a shard, in a drawn order."""
    _, files = read_set(folder)
    rows = [row for file in files for row in GRAPHS.read(file)]
    number, total = shard
    mine = [row for row in rows if int(row.full[:8], 16) % total == number - 1]
    random.Random(0).shuffle(mine)  # noqa: S311 (no secret)
    return mine


def kept_rows(
    rows: Iterable[TrainingRow], settings: DataSettings, evaluation: SuiteKeys
) -> tuple[list[TrainingRow], Counter[str]]:
    """The rows that may be learned from, and how many are left out for which reason.

    Raises:
        InputError: a row that is kept leaks from evaluation.
    """
    left_out: Counter[str] = Counter()
    by_sequence: dict[tuple[str, ...], dict[str, None]] = {}
    kept: list[TrainingRow] = []
    seen: set[tuple[str, str]] = set()
    for row in sorted(rows, key=lambda row: _draw(row.structure + row.dtype)):
        structures = by_sequence.setdefault(row.op_sequence, {})
        is_new = row.structure not in structures
        if row.verdict == "wrong":
            left_out["wrong"] += 1
        elif (row.structure, row.dtype) in seen:
            left_out["known structure"] += 1
        elif row.structure in evaluation.structures or row.op_sequence in evaluation.sequences:
            left_out["of evaluation"] += 1
        elif is_new and len(structures) >= settings.max_per_sequence:
            left_out["op sequence has enough"] += 1
        else:
            structures[row.structure] = None
            seen.add((row.structure, row.dtype))
            kept.append(row)
    check_apart(kept, evaluation)
    return kept, left_out


def check_apart(rows: Sequence[TrainingRow], evaluation: SuiteKeys) -> None:
    """See that no row shares op sequence or structure with a suite of evaluation.

    Raises:
        InputError: one does; it is named.
    """
    keys = [RowKeys(row.full, row.structure, row.op_sequence) for row in rows]
    found = leaks(keys, {row.full: "train" for row in rows}, evaluation)
    if found:
        raise InputError(
            f"{len(found)} rows of training data leak from evaluation, the first "
            f"{found[0].row[:16]} ({found[0].what} of {found[0].other}); make the data again with "
            "--eval for each suite"
        )


def _draw(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_training(folder: Path) -> tuple[TrainingManifest, list[TrainingRow]]:
    """Training data with its manifest.

    Raises:
        InputError: there is none, or a file is not the one described.
    """
    manifest = read_json(folder / MANIFEST_FILE, TrainingManifest)
    files = check_shards(folder, manifest.shards, MANIFEST_FILE)
    rows = [row for file in files for row in TRAINING.read(file)]
    if not rows:
        raise InputError(f"{folder}: holds no row to learn from")
    return manifest, rows


def known_rows(folder: Path) -> list[TrainingRow]:
    """The rows of a run, with what the judge has said of them; or of written training data.

    Raises:
        InputError: the folder holds neither.
    """
    if not (folder / MADE_FILE).exists():
        return read_training(folder)[1]
    rows = [row for made in data_run(folder).records().values() for row in made.rows]
    return with_verdicts(rows, verdict_run(folder).records())


def with_verdicts(
    rows: Iterable[TrainingRow], verdicts: Mapping[str, RowVerdict]
) -> list[TrainingRow]:
    """Rows, each with the verdict on it where there is one, by `row_key`."""
    judged = []
    for row in rows:
        verdict = verdicts.get(row_key(row))
        if verdict is not None:
            judge_s = round(verdict.judge_s, 3)
            row = replace(row, verdict=verdict.verdict, status=verdict.status, judge_s=judge_s)
        judged.append(row)
    return judged


def merge_rows(
    folders: Sequence[Path],
    out: Path,
    settings: DataSettings,
    evaluation: SuiteKeys,
    has_unjudged: bool = False,
) -> TrainingManifest:
    """The training data of some runs, or data that is there, as files with a manifest in `out`.

    Rows that were not judged are left out, but with `has_unjudged`.
    """
    rows = [row for folder in folders for row in known_rows(folder)]
    judged = [row for row in rows if has_unjudged or row.verdict != "not judged"]
    kept, left_out = kept_rows(judged, settings, evaluation)
    left_out["not judged"] = len(rows) - len(judged)
    return write_rows(out, kept, evaluation.hashes, left_out)


def write_rows(
    out: Path,
    rows: Sequence[TrainingRow],
    hashes: dict[str, str],
    left_out: Counter[str],
    judged_from: tuple[str, ...] = (),
) -> TrainingManifest:
    """Write rows as Parquet files with a manifest, replacing those of the folder."""
    out.mkdir(parents=True, exist_ok=True)
    shards = write_shards(out, SHARD_NAME, rows, TRAINING, lambda row: len(row.folder))
    manifest = TrainingManifest(
        SCHEMA_VERSION,
        len(rows),
        len({row.structure for row in rows}),
        len({row.op_sequence for row in rows}),
        dict(sorted(Counter(row.verdict for row in rows).items())),
        dict(sorted(Counter(row.dtype for row in rows).items())),
        dict(sorted(left_out.items())),
        dict(hashes),
        shards,
        judged_from,
    )
    write_json(out / MANIFEST_FILE, manifest)
    return manifest


def mine_rows(
    rows: Sequence[GraphRow],
    out: Path,
    info: DataInfo,
    evaluation: SuiteKeys,
    resume: bool,
    step: Callable[[str], None],
    until: Callable[[], bool] = lambda: False,
    passed_over: Iterable[str] = (),
    num_actors: int | None = None,
) -> int:
    """Make rows of captured graphs, one graph after another or by so many actors of a Ray cluster,
    until there are enough structures or `until` says so; the number of structures that there are.

    Structures of `passed_over` are known from elsewhere: no row is made of them. Two actors may
    make rows of one structure, of which data keeps one.
    """
    run = data_run(out)
    complaint = f"{out}: was begun with other settings; choose another --out"
    with run.begin(info, resume, unchanged(complaint)):
        records = run.records()
        known = {row.structure for made in records.values() for row in made.rows}
        structures = set(known)
        known.update(passed_over)
        missing = [row for row in rows if row.full not in records]
        opener = partial(_miner, info.settings, evaluation, known)
        with (
            run.recorder(len(records)) as record,
            closing(results_of(missing, opener, num_actors)) as results,
        ):
            while len(structures) < info.settings.num_structures and not until():
                made = next(results, None)
                if made is None:
                    break
                record(made)
                structures.update(each.structure for each in made.rows)
                step(f"{len(structures)} structures")
    return len(structures)


@contextmanager
def _miner(
    settings: DataSettings, evaluation: SuiteKeys, known: set[str]
) -> Iterator[Callable[[GraphRow], MadeRows]]:
    """What makes the rows of one captured graph after another."""
    yield lambda row: make_rows(row, settings, evaluation, known)
