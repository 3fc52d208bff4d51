"""The verifier of a Harbor task: judges the pass folder of an agent and writes its AS.

The export copies this file next to a task's suite, judge settings and held-out shapes. `test.sh`
runs it with the pass folder, the folder of its output, and the way passes are called. An invalid
pass folder scores like one that matches nowhere. Where our own machinery fails it writes no
reward, so that Harbor reports an error and the trial can be repeated.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from passnet.bench.run import run_suite
from passnet.bench.run_record import TABLES_FILE
from passnet.core.records.serialise import read_json
from passnet.errors import PassFolderError, PassnetError
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.score.es import SEVERE_PENALTY
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import load_suite
from passnet.pages.tables.results import write_results
from passnet.passes.folder import inspect_folder

SUITE_FILE = "task.parquet"
HELD_OUT_FILE = "held-out.parquet"
SETTINGS_FILE = "settings.json"
REWARD_FILES = ("reward.txt", "reward.json")
"""Harbor 0.25 takes the second before the first, older versions the other way round."""


def verify(tests: Path, passes: Path, logs: Path, call: str) -> None:
    """Write the reward of a pass folder; there is none where this raises.

    The folder `tests` has the suite of the one task, and how to judge; `logs` is for the reward,
    and for the run as it was measured. The rewritten graph is called "compiled", "direct" or
    "guarded".

    Raises:
        InputError: suite or settings cannot be read, or this machine lacks the device.
        MeasureError: our own machinery fails again and again.
    """
    logs.mkdir(parents=True, exist_ok=True)
    try:
        score = _score(tests, passes, logs / "run", call)
    finally:
        for name in REWARD_FILES:  # also what a candidate may have put there
            (logs / name).unlink(missing_ok=True)
    (logs / REWARD_FILES[0]).write_text(f"{score}\n")
    (logs / REWARD_FILES[1]).write_text(json.dumps({"reward": score}) + "\n")


def _score(tests: Path, passes: Path, out: Path, call: str) -> float:
    try:
        inspect_folder(passes)
    except PassFolderError as cause:
        print(f"no pass folder: {cause}")
        return SEVERE_PENALTY
    suite = load_suite(str(tests / SUITE_FILE))
    unseen = tests / HELD_OUT_FILE
    held_out = load_suite(str(unseen)) if unseen.exists() else None
    word = str(passes) if call == "compiled" else f"{passes}@{call}"
    candidate = parse_candidate(word, suite.tasks)
    sandbox = find_sandbox("auto")
    notes = [*suite.notes, *candidate.notes]
    if sandbox.name == "none":
        notes.append(f"candidate code is not confined: {sandbox.reason}")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    settings = replace(read_json(tests / SETTINGS_FILE, RunSettings), sandbox=sandbox.name)
    run_suite(suite, [candidate], settings, out, held_out=held_out)
    (scores,) = write_results(out)
    print((out / TABLES_FILE).read_text(encoding="utf-8"))
    return scores.suite.score


if __name__ == "__main__":
    passes, logs = (Path(word).resolve() for word in sys.argv[1:3])
    try:
        verify(Path(__file__).resolve().parent, passes, logs, sys.argv[3])
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
