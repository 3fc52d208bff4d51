"""The items to profile: nets, or a stratified sample of the subgraphs of a dataset or suite.

Strata are library, domain, number of ops and dtype. Each gets a share in proportion to its rows, at
least one if possible, spread evenly between the smallest and the largest arguments.
"""

import hashlib
import math
import random
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from passnet.bench.profiling.record import ProfileSubject
from passnet.core.jobs.process import JobLimits
from passnet.core.records.serialise import decode, encode
from passnet.data.capture import store as captured
from passnet.data.capture.catalog import libraries, names_of, resolve
from passnet.data.capture.record import is_file, library_of
from passnet.data.capture.sampling import draw_nets
from passnet.data.dataset.query import Dataset
from passnet.data.dataset.store import MANIFEST_FILE, SubgraphRow, main_dtype
from passnet.errors import InputError
from passnet.graph.canonical import op_sequence
from passnet.graph.spec import TensorSpec
from passnet.graph.text.meta import input_mib
from passnet.graph.text.render import render_program
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import Suite, load_suite
from passnet.judge.task import TaskGraph

T = TypeVar("T")

WANTED = "list_contains(kinds, 'fusible') or list_contains(kinds, 'classical')"
"""Rows that are drawn: fusible and classical subgraphs, but no single ops."""

OPS_BOUNDS = (3, 5, 9, 17, 33)
"""Bounds of the strata of numbers of ops."""

MAX_INPUT_MIB = 256.0
SPARE = 4
"""Rows of a stratum that are read for each row that is drawn."""

QUERY_LIMITS = JobLimits(600.0, 16384)
ROWS_A_QUERY = 500


def draw_subjects(words: Sequence[str], limit: int | None, seed: int) -> list[ProfileSubject]:
    """Return the items of datasets, suites, sets of captured graphs, or nets of the catalog.

    `limit` is the most items of all together; each word gives an equal share.

    Raises:
        InputError: a word means nothing, there is nothing to draw, or more words than items.
    """
    if limit is not None and limit < len(words):
        raise InputError(f"--limit {limit}: fewer than the {len(words)} sources of items")
    subjects: dict[str, ProfileSubject] = {}
    for number, word in enumerate(words):
        share = None if limit is None else (limit + number) // len(words)
        for subject in _subjects_of(word, share, seed):
            subjects.setdefault(subject.name, subject)
    if not subjects:
        raise InputError(f"{', '.join(words)}: holds nothing to profile")
    return list(subjects.values())


def _subjects_of(word: str, limit: int | None, seed: int) -> list[ProfileSubject]:
    path = Path(word)
    if word in shipped_suites():
        return _of_suite(load_suite(word), limit, seed)
    if (path / MANIFEST_FILE).is_file():
        return _of_dataset(path, limit, seed)
    if (path / captured.MANIFEST_FILE).is_file():
        return [_net(name) for name in _of_captures(path, limit, seed)]
    if path.is_dir() or path.suffix == ".parquet":
        return _of_suite(load_suite(word), limit, seed)
    names = resolve([word])
    if limit is not None:
        names = sorted(random.Random(seed).sample(names, min(limit, len(names))), key=names.index)
    return [_net(name) for name in names]


def _of_captures(folder: Path, limit: int | None, seed: int) -> list[str]:
    net_names: set[str] = set()
    for library in libraries():
        with suppress(InputError):  # it is not installed
            net_names.update(names_of(library))
    _, files = captured.read_set(folder)
    rows = (row for file in files for row in captured.GRAPHS.read(file))
    names = draw_nets(rows, net_names, sys.maxsize if limit is None else limit, seed)
    if not names:
        raise InputError(f"{folder}: has no nets of libraries that are installed; install some")
    return names


def _net(name: str) -> ProfileSubject:
    return ProfileSubject(name, "net", "own" if is_file(name) else library_of(name))


def _of_suite(suite: Suite, limit: int | None, seed: int) -> list[ProfileSubject]:
    subjects = [_of_suite_graph(graph) for graph in suite.graphs if graph.graph.tensors]
    strata: dict[tuple[str, ...], list[ProfileSubject]] = defaultdict(list)
    for subject in subjects:
        num_ops = _ops_range(len(subject.ops))
        strata[subject.library, subject.domain, subject.dtype, num_ops].append(subject)
    drawn = shares({key: len(rows) for key, rows in strata.items()}, limit or len(subjects), seed)
    return [
        replace(subject, weight=share.weight(share.num_items))
        for key, share in drawn.items()
        for subject in _spread(sorted(strata[key], key=_size), share.num_items)
    ]


def _of_suite_graph(graph: TaskGraph) -> ProfileSubject:
    tensors = graph.graph.tensors
    source = graph.source
    return ProfileSubject(
        graph.name,
        "subgraph",
        source.library if source else "",
        source.domain if source else "",
        main_dtype(tensors),
        op_sequence(graph.graph.program),
        input_mib(tensors),
        render_program(graph.graph.program),
        encode(tensors).decode(),
    )


def _of_dataset(folder: Path, limit: int | None, seed: int) -> list[ProfileSubject]:
    with Dataset(folder, QUERY_LIMITS) as dataset:
        names = ("full", "nets", "domain", "dtype", "num_ops")
        table = dataset.table(WANTED, names).to_pydict()
        strata: dict[tuple[str, ...], list[str]] = defaultdict(list)
        columns = [table[name] for name in names]
        for full, nets, domain, dtype, num_ops in zip(*columns, strict=True):
            library = library_of(nets[0]) if nets else ""
            strata[library, domain, dtype, _ops_range(num_ops)].append(full)
        total = sum(map(len, strata.values()))
        drawn = shares({key: len(rows) for key, rows in strata.items()}, limit or total, seed)
        samples = {
            key: _sample(strata[key], SPARE * share.num_items, seed) for key, share in drawn.items()
        }
        rows = _rows(dataset, [full for names in samples.values() for full in names])
    subjects = []
    for key, share in drawn.items():
        candidates = [_of_row(rows[full]) for full in samples[key] if full in rows]
        fitting = [subject for subject in candidates if subject.input_mib <= MAX_INPUT_MIB]
        spread = _spread(sorted(fitting, key=_size), share.num_items)
        subjects += [replace(subject, weight=share.weight(len(spread))) for subject in spread]
    return subjects


def _rows(dataset: Dataset, names: Sequence[str]) -> dict[str, SubgraphRow]:
    rows = {}
    for start in range(0, len(names), ROWS_A_QUERY):
        listed = ", ".join(f"'{name}'" for name in names[start : start + ROWS_A_QUERY])
        rows |= {row.full: row for row in dataset.rows(f'"full" IN ({listed})')}
    return rows


def _of_row(row: SubgraphRow) -> ProfileSubject:
    tensors = decode(row.tensors, tuple[TensorSpec, ...], row.full)
    library = library_of(row.nets[0]) if row.nets else ""
    return ProfileSubject(
        row.full[:16], "subgraph", library, row.domain, row.dtype, row.op_sequence,
        input_mib(tensors), row.program, row.tensors,
    )  # fmt: skip


def _ops_range(num_ops: int) -> str:
    return str(bisect_right(OPS_BOUNDS, num_ops))


def _size(subject: ProfileSubject) -> tuple[float, str]:
    return subject.input_mib, subject.name


def _sample(names: Sequence[str], count: int, seed: int) -> list[str]:
    """Return `count` of the names, always the same for a seed."""

    def rank(name: str) -> str:
        return hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()

    return sorted(names, key=rank)[:count]


def _spread(ordered: Sequence[T], count: int) -> list[T]:
    """Return `count` of the elements, evenly spaced.

    Examples:
        >>> _spread([1, 2, 3, 4, 5], 3)
        [1, 3, 5]
        >>> _spread([1, 2, 3], 1)
        [2]
    """
    if count >= len(ordered):
        return list(ordered)
    if count == 1:
        return [ordered[len(ordered) // 2]]
    return [ordered[round(index * (len(ordered) - 1) / (count - 1))] for index in range(count)]


@dataclass(frozen=True, slots=True)
class StratumShare:
    """The share of a stratum in a draw: its size, the items to draw, and its chance to be drawn."""

    size: int
    num_items: int
    chance: float = 1.0

    def weight(self, num_drawn: int) -> float:
        """Return the number of rows of all strata that each of the drawn items stands for."""
        return self.size / self.chance / num_drawn


def shares(
    sizes: Mapping[tuple[str, ...], int], total: int, seed: int
) -> dict[tuple[str, ...], StratumShare]:
    """Return the share of each stratum that is drawn, in their order, given the sizes of strata.

    Shares are in proportion, by largest remainders, and at least one. With more strata than
    items, strata are drawn by chance, with a probability in proportion to their size.

    Source:
        Madow 1949, "On the theory of systematic sampling, II", for the draw by chance.

    Examples:
        >>> drawn = shares({("a",): 90, ("b",): 9, ("c",): 1}, 10, 0)
        >>> [share.num_items for share in drawn.values()]
        [8, 1, 1]
    """
    total = min(total, sum(sizes.values()))
    if total < len(sizes):
        return _drawn_strata(sizes, total, random.Random(seed))
    whole = sum(sizes.values())
    exact = {key: size * total / whole for key, size in sizes.items()}
    counts = {key: max(1, int(value)) for key, value in exact.items()}
    while (missing := total - sum(counts.values())) != 0:
        step = 1 if missing > 0 else -1
        can = [key for key in sizes if (counts[key] < sizes[key] if step > 0 else counts[key] > 1)]
        counts[max(can, key=lambda key: (step * (exact[key] - counts[key]), key))] += step
    return {key: StratumShare(sizes[key], count) for key, count in sorted(counts.items())}


def _drawn_strata(
    sizes: Mapping[tuple[str, ...], int], total: int, source: random.Random
) -> dict[tuple[str, ...], StratumShare]:
    """Return `total` strata, one item each, drawn systematically from a shuffled list."""
    keys = sorted(sizes, key=lambda key: (-sizes[key], key))
    chances: dict[tuple[str, ...], float] = {}
    room, rest = total, sum(sizes.values())
    for key in keys:  # those that are large enough are always drawn
        chances[key] = min(1.0, room * sizes[key] / rest)
        if chances[key] == 1.0:
            room, rest = room - 1, rest - sizes[key]
    source.shuffle(keys)
    start = source.random()
    drawn, passed = {}, 0.0
    for key in keys:
        before, passed = passed, passed + chances[key]
        if math.floor(passed - start) > math.floor(before - start):
            drawn[key] = StratumShare(sizes[key], 1, chances[key])
    return dict(sorted(drawn.items()))
