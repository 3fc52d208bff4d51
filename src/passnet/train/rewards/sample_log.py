"""The log of a training's answers in its folder, and the monitors that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import LineWriter, decode, make_folder, unpack_lines
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
    """The answers of a run in one file, which the processes of the run write and read together.

    Each process of a training has a log of its own: the ranks, and workers with a pickled copy. An
    answer gets its number from the file, and every log sees the answers of all.
    """

    out: Path
    """Folder of the run."""

    limits: MonitorLimits = MonitorLimits()
    write_page: Callable[[Path], object] | None = None
    """Writer of the run's page into its folder, called when the log is left."""

    _samples: list[Sample] = field(default_factory=list)
    _num_read_bytes: int = 0
    _writer: LineWriter | None = None

    def __enter__(self) -> SampleLog:
        make_folder(self.out)
        unpack_lines(self._path)
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__()
            if self.write_page is not None:
                self.write_page(self.out)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_writer": None}  # a copy opens the file for itself

    @property
    def samples(self) -> list[Sample]:
        """Answers of all processes so far, by number."""
        self._read()
        return self._samples

    def put(self, sample: Sample) -> Sample:
        """Record a new answer, and return it with its number in the run."""
        with self._alone() as writer:
            numbered = replace(sample, number=len(self._samples))
            writer.write(numbered)
        return numbered

    def amend(self, sample: Sample) -> None:
        """Record an answer in place of the one with its number."""
        with self._alone() as writer:
            writer.write(sample)

    def check(self, step: int, logs: Mapping[str, float]) -> MonitorRecord:
        """Record and return the readings of the monitors at a step of the training.

        `logs` are the trainer's own numbers, as TRL names them.

        Raises:
            TrainingStoppedError: a reading is beyond its limit.
        """
        record = MonitorRecord(step, read_monitors(self.samples, logs, self.limits))
        with LineWriter(self.out / MONITORS_FILE) as writer:
            writer.write(record)
        stop_if_beyond(record, str(self._path))
        return record

    @property
    def _path(self) -> Path:
        return self.out / SAMPLES_FILE

    @contextmanager
    def _alone(self) -> Iterator[LineWriter]:
        """Keep other processes from writing for the length of the block, which sees all answers."""
        import fcntl  # not on Windows, where logs can be read

        with self._path.open("ab") as locked:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(locked, fcntl.LOCK_EX)
            if self._writer is None:
                self._writer = LineWriter(self._path).__enter__()
            self._read()
            locked.truncate(self._num_read_bytes)  # a torn line of a process that was killed
            yield self._writer

    def _read(self) -> None:
        """Read the lines that the file has got since the last time."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._num_read_bytes)
            content = stream.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._num_read_bytes += len(whole)
        for line in whole.splitlines():
            sample = decode(line, Sample, str(self._path))
            self._samples[sample.number : sample.number + 1] = [sample]


def monitor_callback(log: SampleLog) -> Any:
    """Return a callback for trainers of transformers and TRL that runs `SampleLog.check`."""
    from transformers import TrainerCallback

    class MonitorCallback(TrainerCallback):
        """Reads the monitors whenever the trainer logs."""

        def on_log(self, args: Any, state: Any, control: Any, **event: Any) -> None:
            """Check the last answers of all ranks and the trainer's numbers, on the first rank."""
            if not state.is_world_process_zero:
                return
            logs = event.get("logs") or {}
            numbers = {name: float(value) for name, value in logs.items() if _is_number(value)}
            log.check(state.global_step, numbers)

    return MonitorCallback()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value and abs(value) != float("inf")
