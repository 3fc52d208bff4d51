"""A run of profiles: a record of each item as soon as it is known, resumable and in parts."""

import hashlib
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

from passnet.bench.environment import describe_environment
from passnet.bench.profiling.job import profile_isolated
from passnet.bench.profiling.record import ProfileInfo, ProfileItem, ProfileRecord, ProfileSettings
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import DEFAULT_PLAN, RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import InputError

RUN_FILE = "profile.json"
RECORDS_FILE = "profiles.jsonl"


def profile_items(
    items: Sequence[ProfileItem],
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
    names = "\n".join(sorted(item.name for item in items))
    info = ProfileInfo(
        SCHEMA_VERSION,
        settings,
        hashlib.sha256(names.encode()).hexdigest(),
        len(items),
        describe_environment(),
    )

    def continued(begun: ProfileInfo, info: ProfileInfo) -> ProfileInfo:
        if not _is_same_run(begun, info):
            raise InputError(
                f"{out}: profiles other items, or with other settings; choose another --out, or "
                "give those"
            )
        return begun

    others: list[ProfileRecord] = []
    for folder in plan.parts:
        other = profile_folder(folder)
        if not _is_same_run(other.read_info(), info):
            raise InputError(
                f"{folder}: profiles other items, or with other settings, so it is no part of "
                "this run"
            )
        others += other.records().values()
    with run.begin(info, plan.resume, continued):
        records = run.records()
        run.take(others, records, lambda record: record.status == "ok")
        done = {name for name, record in records.items() if record.status == "ok" or not plan.retry}
        by_name = {item.name: item for item in items}
        here = [name for name in by_name if plan.shard.has(name)]
        missing = [name for name in here if name not in done]
        for name in here:
            if name in done:
                plan.progress(records[name])
        work = partial(profile_isolated, items=by_name, settings=settings)
        outcomes = plan.executor(missing, work, plan.num_workers)
        for record in run.keep(outcomes, len(records)):
            records[record.name] = record
            plan.progress(record)
        return list(records.values())


def _is_same_run(one: ProfileInfo, other: ProfileInfo) -> bool:
    return (one.settings, one.items_hash) == (other.settings, other.items_hash)


def profile_folder(out: Path) -> RunFolder[ProfileInfo, ProfileRecord, str]:
    """Return the folder of a run of profiles."""
    name = attrgetter("name")
    return RunFolder(out, RUN_FILE, ProfileInfo, RECORDS_FILE, ProfileRecord, name, "profiles")


def read_profiles(folders: Sequence[Path]) -> list[ProfileRecord]:
    """Return the records of several runs, each item once and measured if possible.

    Raises:
        InputError: a folder holds no profiles.
    """
    found: dict[str, ProfileRecord] = {}
    for folder in folders:
        records = profile_folder(folder).records()
        if not records:
            raise InputError(f"{folder}: holds no profiles ({RECORDS_FILE})")
        for name, record in records.items():
            if name not in found or found[name].status != "ok" or record.status == "ok":
                found[name] = record
    return list(found.values())
