"""The answers of a training, kept in its folder, and the monitors that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from passnet.core.jobs.run_folder import last_records
from passnet.core.records.serialise import LineWriter, drop_lines, make_folder
from passnet.pages.figures.training_page import write_run_page
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
    """The answers of a run, each on disk as soon as it is judged; entered, it holds those before.

    Args:
        out: the folder of the run.
        limits: of its monitors.
        samples: the answers so far, by their number.
    """

    out: Path
    limits: MonitorLimits = MonitorLimits()
    samples: list[Sample] = field(default_factory=list)
    _writer: LineWriter | None = None

    def __enter__(self) -> SampleLog:
        make_folder(self.out)
        self.samples = self._kept()
        return self

    def __exit__(self, *_: object) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__()
            write_run_page(self.out)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_writer": None}  # whoever gets a copy opens the file for itself

    def put(self, sample: Sample) -> None:
        """Keep an answer, a new one or in place of that of its number."""
        if self._writer is None:
            self._writer = LineWriter(self.out / SAMPLES_FILE).__enter__()
        self._writer.write(sample)
        self.samples[sample.number : sample.number + 1] = [sample]

    def forget_from(self, step: int) -> None:
        """Take out what belongs to a step and those after it, which a training that goes on does
        again. To be called before the log is entered.

        Args:
            step: of the training, from which on it goes on.
        """
        drop_lines(self.out / SAMPLES_FILE, Sample, lambda each: each.step >= step)
        drop_lines(self.out / MONITORS_FILE, MonitorRecord, lambda each: each.step > step)

    def check(self, step: int, logs: Mapping[str, float]) -> MonitorRecord:
        """What the monitors see at a step, kept with the run.

        Args:
            step: of the training.
            logs: the trainer's own numbers, as TRL names them.

        Raises:
            TrainingStoppedError: something is beyond its limit.
        """
        samples = self.samples or self._kept()  # another process may have judged and kept them
        record = MonitorRecord(step, read_monitors(samples, logs, self.limits))
        with LineWriter(self.out / MONITORS_FILE) as writer:
            writer.write(record)
        stop_if_beyond(record, str(self.out / SAMPLES_FILE))
        return record

    def _kept(self) -> list[Sample]:
        path = self.out / SAMPLES_FILE
        return list(last_records(path, Sample, lambda each: each.number).values())


def monitor_callback(log: SampleLog) -> Any:
    """A callback for trainers of transformers and TRL, that stops them by `SampleLog.check`."""
    from transformers import TrainerCallback

    class MonitorCallback(TrainerCallback):
        """Lets the monitors look whenever the trainer logs."""

        def on_log(self, args: Any, state: Any, control: Any, **known: Any) -> None:
            """Look at the last answers, and at what the trainer logs."""
            logs = known.get("logs") or {}
            numbers = {name: float(each) for name, each in logs.items() if _is_number(each)}
            log.check(state.global_step, numbers)

    return MonitorCallback()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value and abs(value) != float("inf")
