"""An entry of a leaderboard: a run as a folder with its record, trials and pass folders."""

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from passnet.bench.in_nets import PassesInNets
from passnet.bench.run_record import BenchRunInfo
from passnet.bench.scores import CandidateScore, Row, score_rows, untimed_candidates
from passnet.core.records.folders import below
from passnet.core.records.parquet import FileLimits, Format
from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.core.records.untrusted import untrusted_digest
from passnet.errors import InputError, no_such
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry, parse_candidate
from passnet.judge.suite.suite import Suite
from passnet.judge.trial import Trial
from passnet.passes.folder import LIST_FILE, is_pass_folder

ENTRY_FILE = "entry.json"
ENTRY_TRIALS_FILE = "trials.parquet"
PASSES_FOLDER = "passes"
VERIFIED_FOLDER = "verified"
"""Folder of the verifications of a leaderboard; no entry has this name."""

TRIALS: Format[Trial] = Format(
    Trial, "trials", limits=FileLimits(file_bytes=64 * 2**20, unpacked_bytes=512 * 2**20)
)
"""File format of an entry's trials; those of PassBench v0 under three candidates take 1.8 MB."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ROOT = re.compile(rf"{PASSES_FOLDER}/\d{{1,3}}")


@dataclass(frozen=True)
class ClaimedScore:
    """The score of a candidate as an entry claims it."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class LeaderboardEntry:
    """The record of an entry, in `entry.json`."""

    schema_version: int
    name: str

    by: str
    """The sender."""

    info: BenchRunInfo
    """Record of the run, with the candidates' folders in the entry."""

    scores: dict[str, ClaimedScore | None]
    """None for a candidate whose trials are all unstable."""

    num_trials: int
    trials_sha256: str

    in_nets: tuple[PassesInNets, ...] = ()
    """The passes in nets that their tasks came from, as the run's folder has it."""


def rows_of(trials: Sequence[Trial]) -> list[Row]:
    """Return the fields of trials that scores are made from."""
    names = [field.name for field in fields(Row)]
    return [Row(**{name: getattr(trial, name) for name in names}) for trial in trials]


def scores_of(trials: Sequence[Trial]) -> dict[str, CandidateScore | None]:
    """Score every candidate of some trials; None for one without times."""
    rows = rows_of(trials)
    untimed = untimed_candidates(rows)
    timed = [row for row in rows if row.candidate not in untimed]
    scores: dict[str, CandidateScore | None] = dict.fromkeys(row.candidate for row in rows)
    if timed:
        scores |= {score.candidate: score for score in score_rows(timed)}
    return scores


def claimed_scores(trials: Sequence[Trial]) -> dict[str, ClaimedScore | None]:
    """Return the scores that an entry with some trials claims."""
    claims: dict[str, ClaimedScore | None] = {}
    for name, score in scores_of(trials).items():
        claims[name] = None
        if score is not None:
            both = score.intervals["both"]
            claims[name] = ClaimedScore(score.suite.score, both.low, both.high)
    return claims


def check_name(name: str) -> None:
    """Raise InputError unless an entry may have a name."""
    if _NAME.fullmatch(name) is None or name == VERIFIED_FOLDER:
        raise InputError(
            f"{name[:80]!r} is no name of an entry; take lower-case letters, digits, dots, "
            f"dashes and underscores, at most 64, and not {VERIFIED_FOLDER!r}"
        )


def write_entry(
    folder: Path,
    name: str,
    by: str,
    info: BenchRunInfo,
    trials: Sequence[Trial],
    suite: Suite,
    in_nets: Sequence[PassesInNets] = (),
) -> LeaderboardEntry:
    """Write a run as an entry to an empty folder.

    Raises:
        InputError: the files of a candidate's passes are gone or were changed since the run.
    """
    check_name(name)
    roots: dict[str, str] = {}
    for candidate in info.candidates:
        root = candidate.root or candidate.passes or ""
        if candidate.has_code and root not in roots:
            roots[root] = f"{PASSES_FOLDER}/{len(roots)}"
            _copy_passes(Path(root), folder / roots[root], suite, candidate.name)
    names: dict[str, str] = {}
    candidates = []
    for candidate in info.candidates:
        root = roots.get(candidate.root or candidate.passes or "")
        names[candidate.name] = _name_in_entry(candidate, name, root, len(roots))
        candidates.append(replace(candidate, name=names[candidate.name], passes=None, root=root))
    trials = [
        replace(trial, candidate=names[trial.candidate], machine=None, phases_s={})
        for trial in trials
    ]
    hashes = {names[old]: text for old, text in info.code_hashes.items() if old in names}
    TRIALS.write(folder / ENTRY_TRIALS_FILE, trials)
    entry = LeaderboardEntry(
        SCHEMA_VERSION,
        name,
        by,
        replace(info, candidates=tuple(candidates), code_hashes=hashes),
        claimed_scores(trials),
        len(trials),
        _sha256(folder / ENTRY_TRIALS_FILE),
        tuple(each for each in in_nets if each.code_hash in hashes.values()),
    )
    write_json(folder / ENTRY_FILE, entry)
    return entry


def _name_in_entry(candidate: Candidate, entry: str, root: str | None, num_roots: int) -> str:
    """Return the name of a candidate in an entry, made from the entry's, not a local folder's."""
    if root is None:
        return candidate.name
    word = entry if num_roots == 1 else f"{entry}-{root.rpartition('/')[2]}"
    call = "" if candidate.call == "compiled" else f"@{candidate.call}"
    return word + call + f"@{candidate.residual}" * (candidate.residual != "eager")


def _copy_passes(root: Path, target: Path, suite: Suite, candidate: str) -> None:
    if not root.is_dir():
        raise InputError(
            f"candidate {candidate}: its passes are no longer in {root}; an entry carries them, so "
            "put them back, or leave the candidate out"
        )
    skipped = shutil.ignore_patterns("__pycache__")
    if is_pass_folder(root):
        shutil.copytree(root, target, symlinks=True, ignore=skipped)
        return
    for task in suite.tasks:
        source = below(root, task.name)
        if (source / LIST_FILE).is_file():
            shutil.copytree(source, below(target, task.name), symlinks=True, ignore=skipped)


def read_entry(folder: Path) -> tuple[LeaderboardEntry, list[Trial]]:
    """Read an entry and its trials.

    Raises:
        InputError: a file cannot be read, or two files contradict each other.
    """
    entry = read_json(folder / ENTRY_FILE, LeaderboardEntry)
    if entry.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{folder}: the entry has version {entry.schema_version}, this passnet reads version "
            f"{SCHEMA_VERSION}; add it anew from its run"
        )
    if entry.name != folder.resolve().name:
        raise InputError(f"{folder}: the entry calls itself {entry.name[:80]!r}; name them alike")
    for candidate in entry.info.candidates:
        if candidate.kind == "module" or candidate.passes is not None:
            raise InputError(
                f"{folder}: candidate {candidate.name[:80]!r} names code outside of the entry, "
                "which holds pass folders alone"
            )
        if candidate.has_code and _ROOT.fullmatch(candidate.root or "") is None:
            raise InputError(
                f"{folder}: candidate {candidate.name[:80]!r} has its passes in "
                f"{(candidate.root or 'nothing')[:80]!r}, and not in {PASSES_FOLDER}/NUMBER"
            )
    path = folder / ENTRY_TRIALS_FILE
    if not path.is_file():
        raise InputError(f"{folder}: holds no {ENTRY_TRIALS_FILE}; add the entry anew")
    if _sha256(path) != entry.trials_sha256:
        raise InputError(f"{path}: not the file that {ENTRY_FILE} describes; add the entry anew")
    return entry, list(TRIALS.read(path))


def entry_folders(leaderboard: Path, names: Sequence[str] = ()) -> list[Path]:
    """Return the folders of a leaderboard's entries: all of them, or some by name.

    Raises:
        InputError: there is no such leaderboard or entry.
    """
    if not leaderboard.is_dir():
        raise InputError(f"{leaderboard}: no such folder; `passnet leaderboard add` makes one")
    paths = sorted(leaderboard.glob(f"*/{ENTRY_FILE}"))
    folders = {path.parent.name: path.parent for path in paths}
    if missing := [name for name in names if name not in folders]:
        raise InputError(f"{leaderboard}: {no_such('entry', missing[0], folders)}")
    return [folders[name] for name in names] if names else list(folders.values())


def entry_hash(folder: Path) -> str:
    """Hash the names and contents of all files of an entry."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = str(path.relative_to(folder))
            digest.update(f"{name}\0{_sha256(path)}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()


def candidate_entry(folder: Path, candidate: Candidate, suite: Suite) -> CandidateEntry:
    """Return an entry's candidate for a run; raise InputError if its passes cannot be used."""
    if not candidate.has_code:
        return CandidateEntry(candidate)
    parsed = parse_candidate(str(folder / (candidate.root or "")), suite.tasks)
    template = replace(
        candidate, root=parsed.template.root, call=candidate.call, residual=candidate.residual
    )
    return replace(parsed, template=template)


def _sha256(path: Path) -> str:
    return untrusted_digest(path).hex()
