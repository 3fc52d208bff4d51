"""A run of profiles: a record of each item as soon as it is known, resumable and in parts."""

import hashlib
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

from passnet.bench.environment import describe_environment
from passnet.bench.profiling.job import profile_isolated
from passnet.bench.profiling.record import (
    ProfileInfo,
    ProfileRecord,
    ProfileSettings,
    ProfileSubject,
)
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import InputError

RUN_FILE = "profile.json"
RECORDS_FILE = "profiles.jsonl"


def profile_subjects(
    subjects: Sequence[ProfileSubject],
    settings: ProfileSettings,
    out: Path,
    plan: RunPlan = DEFAULT_PLAN,
) -> list[ProfileRecord]:
    """Profile items into a folder and return the records that it then has.

    Items that are profiled at the same time may disturb each other.

    Raises:
        InputError: `out` holds a run and `plan.resume` is off; it or one of `plan.parts` has other
            items or settings; another process works in `out`; or it cannot be written to.
    """
    run = profile_folder(out)
    names = "\n".join(sorted(subject.name for subject in subjects))
    info = ProfileInfo(
        SCHEMA_VERSION,
        settings,
        hashlib.sha256(names.encode()).hexdigest(),
        len(subjects),
        describe_environment(),
    )

    def continued(begun: ProfileInfo, info: ProfileInfo) -> ProfileInfo:
        if not _is_same_run(begun, info):
            raise InputError(
                f"{out}: profiles other items, or with other settings; choose another --out, or "
                "give those"
            )
        return begun

    part_records: list[ProfileRecord] = []
    for folder in plan.parts:
        part = profile_folder(folder)
        if not _is_same_run(part.read_info(), info):
            raise InputError(
                f"{folder}: profiles other items, or with other settings, so it is no part of "
                "this run"
            )
        part_records += part.records().values()
    with run.begin(info, plan.resume, continued):
        records = run.records()
        run.take(part_records, records, lambda record: record.status == "ok")
        by_name = {subject.name: subject for subject in subjects}
        missing = []
        for name in filter(plan.shard.has, by_name):
            if name in records and (records[name].status == "ok" or not plan.retry):
                plan.progress(records[name])
            else:
                missing.append(name)
        work = partial(profile_isolated, subjects=by_name, settings=settings)
        outcomes = plan.executor(missing, work, plan.num_workers)
        for record in run.keep(outcomes, len(records)):
            records[record.name] = record
            plan.progress(record)
        return list(records.values())


def _is_same_run(old: ProfileInfo, new: ProfileInfo) -> bool:
    return (old.settings, old.items_hash) == (new.settings, new.items_hash)


def profile_folder(out: Path) -> RunFolder[ProfileInfo, ProfileRecord, str]:
    """Return the folder of a run of profiles."""
    name = attrgetter("name")
    return RunFolder(out, RUN_FILE, ProfileInfo, RECORDS_FILE, ProfileRecord, name, "profiles")


def read_profiles(folders: Sequence[Path]) -> list[ProfileRecord]:
    """Return the records of several runs, each item once and measured if possible.

    Raises:
        InputError: a folder holds no profiles.
    """
    best: dict[str, ProfileRecord] = {}
    for folder in folders:
        records = profile_folder(folder).records()
        if not records:
            raise InputError(f"{folder}: holds no profiles ({RECORDS_FILE})")
        for name, record in records.items():
            if name not in best or best[name].status != "ok" or record.status == "ok":
                best[name] = record
    return list(best.values())
