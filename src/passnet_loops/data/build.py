"""Training data by rejection sampling: subgraphs mined, answered by a teacher, and judged.

Rows are made graph by graph, judged one by one, and stored at once, so that a killed run goes on.
Training data holds the rows that the judge finds correct, balanced over op sequences and apart from
every suite of evaluation.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from passnet.core.jobs.actors import results_of
from passnet.core.jobs.run_folder import RunFolder, unchanged
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.parquet import Shard, check_shards, write_shards
from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.data.capture.store import GRAPHS, GraphRow, read_set
from passnet.data.dataset.splits import RowKeys, SuiteKeys, leaks
from passnet.data.mine.dtypes import in_dtype
from passnet.errors import AuthorError, GraphError, InputError, PassnetError, check_exists
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Graph, main_float
from passnet.graph.text.files import graph_from_row
from passnet.graph.text.syntax import gc_paused
from passnet_loops.data.examples import TRAINING, JudgeVerdict, TrainingRow, make_row, time_limit
from passnet_loops.data.mining import windows
from passnet_loops.data.rare_ops import RareOps
from passnet_loops.settings import DataSettings

INFO_FILE = "data.json"
MADE_FILE = "made.jsonl"
VERDICTS_FILE = "verdicts.jsonl"
SHARD_NAME = "training"
MANIFEST_FILE = "training.json"

ROW_LIMIT_S = 20.0
"""Seconds that a teacher may take for a subgraph."""

EXCHANGED = ", ops exchanged"
"""What the net of a row ends with whose subgraph is not as in that net."""

DTYPES = ("float32", "float32", "bfloat16", "float16")
"""Dtypes of subgraphs, each as often as it is listed."""


@dataclass(frozen=True, slots=True)
class DataInfo:
    """The beginning of a run: SHA-256 of the captures' manifest, content hash of each suite of
    `evaluation`, and settings.
    """

    schema_version: int
    captures: str
    evaluation: dict[str, str]
    settings: DataSettings


@dataclass(frozen=True, slots=True)
class MadeRows:
    """The rows of one captured graph, and the number of refusals by reason."""

    graph: str
    rows: tuple[TrainingRow, ...]
    refused: dict[str, int]


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """The judge's verdict on a row, by its key."""

    key: str
    verdict: JudgeVerdict
    status: str
    judge_s: float


@dataclass(frozen=True, slots=True)
class TrainingManifest:
    """The contents of training data, and the rows left out by reason."""

    schema_version: int
    num_rows: int
    num_structures: int
    num_op_sequences: int
    verdicts: dict[str, int]
    dtypes: dict[str, int]
    left_out: dict[str, int]
    evaluation: dict[str, str]
    """Content hash of each suite that it was checked against."""

    shards: tuple[Shard, ...]
    judged_from: tuple[str, ...] = ()
    """SHA-256 of each file of the data before rows of it were judged."""

    @property
    def file_hashes(self) -> tuple[str, ...]:
        """Return the SHA-256 of each file."""
        return tuple(shard.sha256 for shard in self.shards)

    def was_learned(self, data: Collection[str]) -> bool:
        """Return True if files of these hashes are this data, now or before it was judged."""
        return not set(data).isdisjoint((*self.file_hashes, *self.judged_from))


def row_key(row: TrainingRow) -> str:
    """Return the key of a row: subgraph and author."""
    return f"{row.full[:24]}-{row.author}"


@dataclass(frozen=True)
class Excluded:
    """Structures that no row is made of."""

    suites: SuiteKeys
    """Suites of evaluation."""

    structures: set[str] = field(default_factory=set)
    """Structures that have a row."""

    rare: RareOps | None = None
    """Ops of too few rows; if given, subgraphs without one are left out too."""


def make_rows(row: GraphRow, settings: DataSettings, excluded: Excluded) -> MadeRows:
    """Make the rows of one captured graph, and exclude their structures from now on."""
    rows: list[TrainingRow] = []
    refused: Counter[str] = Counter()
    try:
        graph = graph_from_row(row.program, row.tensors, row.full[:16])
        with time_limit(2 * ROW_LIMIT_S):
            subgraphs = list(windows(graph, row.full, settings.max_windows, excluded.rare))
    except (GraphError, AuthorError, InputError):
        return MadeRows(row.full, (), {"graph": 1})
    for window in subgraphs:
        subgraph = window.graph
        structure, ops = fingerprints(subgraph).structure, op_sequence(subgraph.program)
        if structure in excluded.structures:
            refused["known structure"] += 1
        elif structure in excluded.suites.structures or ops in excluded.suites.sequences:
            refused["of evaluation"] += 1
        elif excluded.rare is not None and not any(map(excluded.rare.is_rare, ops)):
            refused["no rare op"] += 1
        else:
            excluded.structures.add(structure)
            net = row.sources[0].entry + (EXCHANGED if window.is_exchanged else "")
            try:
                with time_limit(ROW_LIMIT_S), gc_paused():
                    rows.append(make_row(_cast(subgraph, structure), net)[0])
                if excluded.rare is not None:
                    excluded.rare.add(ops)
            except (PassnetError, RecursionError) as cause:
                refused[type(cause).__name__] += 1
    return MadeRows(row.full, tuple(rows), dict(refused))


def _cast(graph: Graph, structure: str) -> Graph:
    """Return a subgraph in a dtype that its structure draws."""
    dtype = DTYPES[int(structure[:8], 16) % len(DTYPES)]
    return graph if main_float(graph.tensors) in (dtype, None) else in_dtype(graph, dtype)


def data_run(out: Path) -> RunFolder[DataInfo, MadeRows, str]:
    """Return the folder of a run, by captured graphs."""
    graph = attrgetter("graph")
    return RunFolder(out, INFO_FILE, DataInfo, MADE_FILE, MadeRows, graph, "mined graphs")


def verdict_run(out: Path) -> RunFolder[DataInfo, RowVerdict, str]:
    """Return the same folder, by judged rows; the run of mined graphs has its lock."""
    return RunFolder(
        out, INFO_FILE, DataInfo, VERDICTS_FILE, RowVerdict, attrgetter("key"), "judged rows"
    )


def captured_graphs(folder: Path, shard: tuple[int, int]) -> list[GraphRow]:
    """Return the captured graphs of a part of a folder, in random order."""
    _, files = read_set(folder)
    rows = [row for file in files for row in GRAPHS.read(file)]
    number, total = shard
    part = [row for row in rows if int(row.full[:8], 16) % total == number - 1]
    random.Random(0).shuffle(part)  # noqa: S311 (no secret)
    return part


def select_rows(
    rows: Iterable[TrainingRow], settings: DataSettings, evaluation: SuiteKeys
) -> tuple[list[TrainingRow], Counter[str]]:
    """Return the rows to learn from, and the number of rows left out by reason.

    Raises:
        InputError: A row leaks from evaluation.
    """
    left_out: Counter[str] = Counter()
    by_sequence: dict[tuple[str, ...], dict[str, None]] = {}
    kept_rows: list[TrainingRow] = []
    structures_seen: set[tuple[str, str]] = set()
    for row in sorted(rows, key=lambda row: _draw(row.structure + row.dtype)):
        structures = by_sequence.setdefault(row.op_sequence, {})
        is_new = row.structure not in structures
        if row.verdict == "wrong":
            left_out["wrong"] += 1
        elif (row.structure, row.dtype) in structures_seen:
            left_out["known structure"] += 1
        elif row.structure in evaluation.structures or row.op_sequence in evaluation.sequences:
            left_out["of evaluation"] += 1
        elif is_new and len(structures) >= settings.max_per_sequence:
            left_out["op sequence has enough"] += 1
        else:
            structures[row.structure] = None
            structures_seen.add((row.structure, row.dtype))
            kept_rows.append(row)
    check_apart(kept_rows, evaluation)
    return kept_rows, left_out


def check_apart(rows: Sequence[TrainingRow], evaluation: SuiteKeys) -> None:
    """Check that no row shares op sequence or structure with a suite of evaluation.

    Raises:
        InputError: One does; it is named.
    """
    keys = [RowKeys(row.full, row.structure, row.op_sequence) for row in rows]
    leaking = leaks(keys, {row.full: "train" for row in rows}, evaluation)
    if leaking:
        raise InputError(
            f"{len(leaking)} rows of training data leak from evaluation, the first "
            f"{leaking[0].row[:16]} ({leaking[0].what} of {leaking[0].other}); "
            "make the data again with --eval for each suite"
        )


def _draw(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_training(folder: Path) -> tuple[TrainingManifest, list[TrainingRow]]:
    """Read training data with its manifest.

    Raises:
        InputError: There is none, or a file differs from its manifest.
    """
    check_exists(folder)
    if not (folder / MANIFEST_FILE).exists():
        raise InputError(
            f"{folder}: holds no training data ({MANIFEST_FILE}); give the folder of `passnet "
            "train data`"
        )
    manifest = read_json(folder / MANIFEST_FILE, TrainingManifest)
    files = check_shards(folder, manifest.shards, MANIFEST_FILE)
    rows = [row for file in files for row in TRAINING.read(file)]
    if not rows:
        raise InputError(f"{folder}: holds no row to learn from")
    return manifest, rows


def known_rows(folder: Path) -> list[TrainingRow]:
    """Read the rows of a run with their verdicts, or of written training data.

    Raises:
        InputError: The folder holds neither.
    """
    if not (folder / MADE_FILE).exists():
        return read_training(folder)[1]
    rows = [row for batch in data_run(folder).records().values() for row in batch.rows]
    return with_verdicts(rows, verdict_run(folder).records())


def with_verdicts(
    rows: Iterable[TrainingRow], verdicts: Mapping[str, RowVerdict]
) -> list[TrainingRow]:
    """Return rows with their verdicts, found by `row_key`."""
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
    """Merge runs and training data into one in `out`; without `has_unjudged`, of judged rows."""
    rows = [row for folder in folders for row in known_rows(folder)]
    judged = [row for row in rows if has_unjudged or row.verdict != "not judged"]
    selected, left_out = select_rows(judged, settings, evaluation)
    left_out["not judged"] = len(rows) - len(judged)
    return write_rows(out, selected, evaluation.hashes, left_out)


def write_rows(
    out: Path,
    rows: Sequence[TrainingRow],
    hashes: dict[str, str],
    left_out: Counter[str],
    judged_from: tuple[str, ...] = (),
) -> TrainingManifest:
    """Write rows as Parquet files with a manifest in place of the folder's old ones."""
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
    excluded: Excluded,
    plan: RunPlan = DEFAULT_PLAN,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """Make rows of captured graphs until there are enough structures, or `until` returns true.

    On a Ray cluster, two actors may make rows of one structure, of which data holds one.

    Returns:
        The number of structures.
    """
    run = data_run(out)
    complaint = f"{out}: was begun with other settings; choose another --out"
    with run.begin(info, plan.resume, unchanged(complaint)):
        records = run.records()
        made = [row for batch in records.values() for row in batch.rows]
        structures = {row.structure for row in made}
        excluded = replace(excluded, structures=structures | excluded.structures)
        if (rare := excluded.rare) is not None:
            for row in made:
                rare.add(row.op_sequence)
        missing = [row for row in rows if row.full not in records]
        opener = partial(_miner, info.settings, excluded)
        with (
            run.recorder(len(records)) as record,
            closing(results_of(missing, opener, plan.num_actors)) as results,
        ):
            while len(structures) < info.settings.num_structures and not until():
                made_rows = next(results, None)
                if made_rows is None:
                    break
                record(made_rows)
                structures.update(row.structure for row in made_rows.rows)
                plan.progress(f"{len(structures)} structures")
    return len(structures)


@contextmanager
def _miner(settings: DataSettings, excluded: Excluded) -> Iterator[Callable[[GraphRow], MadeRows]]:
    """Yield a function that makes the rows of one captured graph."""
    yield lambda row: make_rows(row, settings, excluded)
