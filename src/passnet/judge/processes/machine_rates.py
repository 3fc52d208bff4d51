"""The rates of this machine, measured once by a process of their own and kept in the cache."""

import hashlib
import logging
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

from passnet.core.hardware import Hardware, processor_name, torch_minor_version
from passnet.core.jobs.children import python_command, python_environment
from passnet.core.records.folders import cache_folder, is_private
from passnet.core.records.serialise import decode, encode, read_json, write_json
from passnet.errors import InputError, MeasureError
from passnet.judge.protocol.device import find_device, kind_of
from passnet.judge.timing.roofline import MachineRates

_PROGRAM = "passnet.judge.worker.rates"
_TIMEOUT_S = 300.0
_log = logging.getLogger("passnet")


@cache
def known_rates(num_threads: int = 1, device: str = "cpu") -> MachineRates | None:
    """Return the rates of this machine; None, with a warning, if they cannot be measured."""
    try:
        return machine_rates(num_threads, device)
    except MeasureError as cause:
        _log.warning("no roofline: %s", cause)
        return None


def machine_rates(
    num_threads: int = 1,
    device: str = "cpu",
    is_again: bool = False,
    measure: Callable[[Hardware], MachineRates] | None = None,
) -> MachineRates:
    """Return the rates of this machine, cached or measured, which takes some seconds.

    Raises:
        MeasureError: they cannot be measured, as without a compiler.
        InputError: there is no such device.
    """
    name = find_device(device) or processor_name()
    hardware = Hardware(kind_of(device), name, num_threads, torch_minor_version())
    key = hashlib.sha256(encode(hardware)).hexdigest()[:32]
    path = cache_folder("rates") / f"{key}.json"
    if not is_again and path.is_file() and is_private(path):
        try:
            return read_json(path, MachineRates)
        except InputError as cause:
            _log.warning("%s; measured again", cause)
    rates = (measure or _measured)(hardware)
    write_json(path, rates)
    path.chmod(0o644)
    return rates


def _measured(hardware: Hardware) -> MachineRates:
    command = python_command("-m", _PROGRAM, hardware.device, str(hardware.num_threads))
    settings: dict[str, Any] = {"env": python_environment(), "cwd": "/", "timeout": _TIMEOUT_S}
    try:
        run = subprocess.run(command, capture_output=True, check=True, **settings)
    except subprocess.TimeoutExpired as cause:
        raise MeasureError(f"measuring rates took more than {_TIMEOUT_S:.0f} s") from cause
    except subprocess.CalledProcessError as cause:
        words = cause.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise MeasureError(f"rates cannot be measured: {' '.join(words)}") from cause
    found = decode(run.stdout, dict[str, Any], "rates")
    return decode(encode({**found, "hardware": asdict(hardware)}), MachineRates, "rates")
