"""`passnet judge roofline`: tables and JSON of a machine's rates."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.core.records.folders import CACHE_VARIABLE
from passnet.judge.processes.machine_rates import machine_rates
from tests.judge.test_roofline import RATES


def test_known_rates_are_printed_without_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    machine_rates(measure=lambda _: RATES)
    shown = CliRunner().invoke(main, ["judge", "roofline"])
    assert shown.exit_code == 0, shown.output
    assert "│ 256 KiB │  10.0 │     8.0 │    9.0 │" in shown.stdout
    assert "│ bfloat16 │      400 │           – │" in shown.stdout
    assert "a made-up processor" in shown.output and "below 50% of T_sol" in shown.output
    printed = json.loads(CliRunner().invoke(main, ["judge", "roofline", "--json"]).stdout)
    assert printed["memory"][2] == [262144, 1e10, 8e9, 9e9]
    assert printed["products"] == {"float32": 1e11, "bfloat16": 4e11}


def test_a_device_that_is_not_there_is_named() -> None:
    shown = CliRunner().invoke(main, ["judge", "roofline", "--device", "cuda"])
    assert shown.exit_code == 2 and "device cuda is not on this machine" in shown.output
