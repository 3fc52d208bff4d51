"""The verifier of a Harbor task: judges the pass folder that an agent left, and writes its AS.

`passnet.agent.harbor` copies this file beside the suite of a task, where `test.sh` runs it with the
suite, the pass folder, the folder for what it writes, how passes are called, and `VerifierOptions`.
What is no pass folder counts like one that matches nowhere. Where our own machinery fails there is
no reward, so that Harbor reports an error and the trial can be made again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import msgspec

from passnet.bench.candidates import parse_candidate
from passnet.bench.files import TABLES_FILE
from passnet.bench.run import RunSettings, run_suite
from passnet.errors import PassFolderError, PassnetError
from passnet.judge.inspection.rules import RulesName
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.timing.clock import TimingPlan
from passnet.judge.trial import JudgeSettings
from passnet.passes.folder import inspect_folder
from passnet.report.results import write_results
from passnet.score.es import SEVERE_PENALTY
from passnet.suite.suite import load_suite

RUN_FOLDER = "run"
REWARD_FILES = ("reward.txt", "reward.json")
"""Harbor 0.25 takes the second before the first, older versions the other way round."""


@dataclass(frozen=True)
class VerifierOptions:
    """How passes are judged: the options in `test.sh`, which are those of `passnet bench run`."""

    device: str = "cpu"
    seed: int = 0
    seconds: float = 0.4
    threads: int = 1
    memory_mib: int = 8192
    compile_timeout: float = 180.0
    call_timeout: float = 30.0
    self_tolerance: float = 0.1
    rules: RulesName = "open"
    sandbox: str = "auto"
    held_out: str | None = None

    def words(self) -> list[str]:
        """The options in the words of a command line, but for those that are None."""
        values = {_option(field.name): getattr(self, field.name) for field in fields(self)}
        return [
            word
            for option, value in values.items()
            if value is not None
            for word in (option, str(value))
        ]


def parse_options(words: Sequence[str]) -> VerifierOptions:
    """The options that the words of a command line give; a word that is none ends the process.

    Raises:
        ValueError: an option has a value that it does not take.
    """
    parser = argparse.ArgumentParser()
    for field in fields(VerifierOptions):
        parser.add_argument(_option(field.name), default=argparse.SUPPRESS)
    return msgspec.convert(vars(parser.parse_args(words)), VerifierOptions, strict=False)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def verify(suite: Path, passes: Path, logs: Path, call: str, options: VerifierOptions) -> None:
    """Write the reward of a pass folder; there is none where this raises.

    Args:
        suite: of the one task.
        passes: what the agent left.
        logs: the folder for the reward, and for the run as it was measured.
        call: how the rewritten graph is called, "compiled" or "direct".
        options: how to judge.

    Raises:
        InputError: the suite cannot be read, or this machine lacks the device.
        MeasureError: our own machinery fails again and again.
    """
    logs.mkdir(parents=True, exist_ok=True)
    try:
        score = _score(suite, passes, logs / RUN_FOLDER, call, options)
    finally:
        for name in REWARD_FILES:  # also what a candidate may have put there
            (logs / name).unlink(missing_ok=True)
    (logs / REWARD_FILES[0]).write_text(f"{score}\n")
    (logs / REWARD_FILES[1]).write_text(json.dumps({"reward": score}) + "\n")


def _score(suite: Path, passes: Path, out: Path, call: str, options: VerifierOptions) -> float:
    try:
        inspect_folder(passes)
    except PassFolderError as cause:
        print(f"no pass folder: {cause}")
        return SEVERE_PENALTY
    task = load_suite(str(suite))
    held_out = load_suite(options.held_out) if options.held_out else None
    candidate = parse_candidate(f"{passes}@direct" if call == "direct" else str(passes), task.tasks)
    sandbox = find_sandbox(options.sandbox)
    for note in (*task.notes, *candidate.notes):
        print(f"note: {note}", file=sys.stderr)
    if sandbox.name == "none":
        print(f"note: candidate code is not confined: {sandbox.reason}", file=sys.stderr)
    settings = RunSettings(
        JudgeSettings(
            device=options.device,
            seed=options.seed,
            timing=TimingPlan(seconds=options.seconds),
            limits=WorkerLimits(options.memory_mib),
            compile_timeout_s=options.compile_timeout,
            call_timeout_s=options.call_timeout,
            self_tolerance=options.self_tolerance,
            rules=options.rules,
        ),
        options.threads,
        sandbox.name,
    )
    run_suite(task, [candidate], settings, out, held_out=held_out)
    (scores,) = write_results(out)
    print((out / TABLES_FILE).read_text(encoding="utf-8"))
    return scores.suite.score


if __name__ == "__main__":
    suite, passes, logs = (Path(word).resolve() for word in sys.argv[1:4])
    try:
        verify(suite, passes, logs, sys.argv[4], parse_options(sys.argv[5:]))
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
