"""The verifier of a Harbor task: judges the pass folder that an agent left, and writes its AS.

`passnet.agent.harbor` copies this file beside the suite of a task, where `test.sh` runs it with the
suite, the pass folder, the folder for what it writes, how passes are called, and options of
`passnet bench run`. What is no pass folder counts like one that matches nowhere. Where our own
machinery fails there is no reward, so that Harbor reports an error and the trial can be made again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from passnet.bench.files import SCORES_FILE
from passnet.errors import PassFolderError
from passnet.passes.folder import inspect_folder
from passnet.score.es import SEVERE_PENALTY

RUN_FOLDER = "run"
REWARD_FILES = ("reward.txt", "reward.json")
"""Harbor 0.25 takes the second before the first, older versions the other way round."""


def verify(suite: Path, passes: Path, logs: Path, call: str, options: list[str]) -> int:
    """Write the reward of a pass folder; the exit status, not 0 where there is no reward.

    Args:
        suite: of the one task.
        passes: what the agent left.
        logs: the folder for the reward, and for the run as it was measured.
        call: how the rewritten graph is called, "compiled" or "direct".
        options: of `passnet bench run`.
    """
    logs.mkdir(parents=True, exist_ok=True)
    score: float | None = SEVERE_PENALTY
    status = 0
    try:
        inspect_folder(passes)
    except PassFolderError as cause:
        print(f"no pass folder: {cause}")
    else:
        run = logs / RUN_FOLDER
        candidate = f"{passes}@direct" if call == "direct" else passes
        words = ["--suite", suite, "--candidate", candidate, "--out", run, *options]
        command = [sys.executable, "-m", "passnet.cli", "bench", "run", *map(str, words)]
        status = subprocess.run(command, check=False, cwd=suite.parent).returncode
        score = None if status else json.loads((run / SCORES_FILE).read_text())["as"]
    for name in REWARD_FILES:  # also what a candidate may have put there
        (logs / name).unlink(missing_ok=True)
    if score is not None:
        (logs / REWARD_FILES[0]).write_text(f"{score}\n")
        (logs / REWARD_FILES[1]).write_text(json.dumps({"reward": score}) + "\n")
    return status


if __name__ == "__main__":
    suite, passes, logs = (Path(word).resolve() for word in sys.argv[1:4])
    sys.exit(verify(suite, passes, logs, sys.argv[4], sys.argv[5:]))
