"""The log of a training's answers in its folder, and the monitors that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from passnet.core.jobs.run_folder import last_records
from passnet.core.records.serialise import LineWriter, make_folder
from passnet.train.rewards.monitors import (
    MONITORS_FILE,
    MonitorLimits,
    MonitorRecord,
    read_monitors,
    stop_if_beyond,
)
from passnet.train.rewards.samples import SAMPLES_FILE, Sample


@dataclass
class SampleLog:
    """The answers of a run, written to disk one by one; entering it reads the earlier ones."""

    out: Path
    """Folder of the run."""

    limits: MonitorLimits = MonitorLimits()
    write_page: Callable[[Path], object] | None = None
    """Writer of the run's page into its folder, called when the log is left."""

    samples: list[Sample] = field(default_factory=list)
    """Answers so far, by number."""

    _writer: LineWriter | None = None

    def __enter__(self) -> SampleLog:
        make_folder(self.out)
        self.samples = self._recorded()
        return self

    def __exit__(self, *_: object) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__()
            if self.write_page is not None:
                self.write_page(self.out)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_writer": None}  # a copy opens the file for itself

    def put(self, sample: Sample) -> None:
        """Record an answer, a new one or in place of the one with its number."""
        if self._writer is None:
            self._writer = LineWriter(self.out / SAMPLES_FILE).__enter__()
        self._writer.write(sample)
        self.samples[sample.number : sample.number + 1] = [sample]

    def check(self, step: int, logs: Mapping[str, float]) -> MonitorRecord:
        """Record and return the readings of the monitors at a step of the training.

        `logs` are the trainer's own numbers, as TRL names them.

        Raises:
            TrainingStoppedError: a reading is beyond its limit.
        """
        samples = self.samples or self._recorded()  # another process may have recorded them
        record = MonitorRecord(step, read_monitors(samples, logs, self.limits))
        with LineWriter(self.out / MONITORS_FILE) as writer:
            writer.write(record)
        stop_if_beyond(record, str(self.out / SAMPLES_FILE))
        return record

    def _recorded(self) -> list[Sample]:
        path = self.out / SAMPLES_FILE
        return list(last_records(path, Sample, lambda sample: sample.number).values())


def monitor_callback(log: SampleLog) -> Any:
    """Return a callback for trainers of transformers and TRL that runs `SampleLog.check`."""
    from transformers import TrainerCallback

    class MonitorCallback(TrainerCallback):
        """Reads the monitors whenever the trainer logs."""

        def on_log(self, args: Any, state: Any, control: Any, **event: Any) -> None:
            """Check the last answers and the trainer's numbers."""
            logs = event.get("logs") or {}
            numbers = {name: float(value) for name, value in logs.items() if _is_number(value)}
            log.check(state.global_step, numbers)

    return MonitorCallback()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value and abs(value) != float("inf")
