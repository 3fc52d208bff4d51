import json
import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from passnet.cli.commands import main
from passnet.cli.optimize import InputSize
from passnet.core.jobs.run_plan import seconds_of
from passnet.errors import InputError

NET = """
import torch

from passnet.data.capture.net import Net, NetInput


def make():
    return Net(torch.nn.Linear(4, 2), (NetInput(torch.ones(1, 4), ("batch", "4")),))
"""


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("1h", 3600)])
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "10d", "-1", "0", "nan", "1e9"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write 90s, 10m or 1h"):
        seconds_of(text)


@pytest.mark.parametrize("second", ["batch=1..8", "batch:0=1..4"])
def test_sizes_that_are_given_twice_are_refused_in_a_sentence(second: str) -> None:
    for given in (["batch=1..4", second], [second, "batch=1..4"]):
        options = [word for text in given for word in ("--dynamic", text)]
        result = CliRunner().invoke(main, ["optimize", "timm/resnet18", *options])
        assert result.exit_code == 2
        assert "another --dynamic gives sizes of it; drop one" in result.output


@pytest.mark.parametrize("text", ["", "8", "batch", "batch=0", "batch=-1", "batch=1.5", "=8"])
def test_what_is_no_size_of_an_axis_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write batch=8"):
        InputSize().convert(text, None, None)


def test_the_inputs_may_have_another_batch(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    command = ["optimize", f"{tmp_path}/net.py:make", "--backend", "graph", "--seconds", "0.02"]
    result = CliRunner().invoke(main, [*command, "--size", "batch=6", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["forms"][0]["inputs"] == ["float32[6, 4]"]
    result = CliRunner().invoke(main, [*command, "--size", "sequence=6"])
    assert result.exit_code == 2
    assert "no axis 'sequence'; there are batch" in result.output


def test_a_net_of_a_file_is_optimised_and_kept(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    out = tmp_path / "out"
    command = ["optimize", f"{tmp_path}/net.py:make", "--backend", "graph", "--seconds", "0.02"]
    result = CliRunner().invoke(main, [*command, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert [each["engine"] for each in record["forms"][0]["engines"]] == ["eager", "graph"]
    assert (out / "optimized.json").is_file()
    assert result.stderr.splitlines()[-1] == f"the page: {out}/report.html"
    result = CliRunner().invoke(main, command)
    words = " ".join(result.output.split())
    assert result.exit_code == 0 and "times as fast as eager PyTorch" in words
    result = CliRunner().invoke(main, [*command, "--out", str(out)])
    assert result.exit_code == 2 and "holds an optimised net already" in result.output
    shutil.rmtree(out)
    result = CliRunner().invoke(main, [*command, "--out", str(out)])
    assert result.stdout.splitlines()[-1] == f"the page: {out}/report.html"
    assert (out / "report.html").is_file()
    result = CliRunner().invoke(main, ["optimize", "timm/nothing_like_it"])
    assert result.exit_code == 2


RAISES = """
def weights():
    raise OSError("no weights")


def make():
    return weights()
"""


def test_an_error_of_the_users_file_shows_its_frames_alone(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(RAISES)
    words = ["-m", "passnet.cli", "optimize", f"{tmp_path}/own.py:make"]
    ended = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.count("File ") == 2, ended.stderr
    assert "in make" in ended.stderr and ended.stderr.endswith("OSError: no weights\n")


def test_a_full_disk_under_out_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    command = [sys.executable, "-m", "passnet.cli", "optimize", f"{tmp_path}/net.py:make"]
    command += ["--backend", "aot", "--seconds", "0.02", "--out", f"{tmp_path}/out"]
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    ended = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert ended.returncode == 2
    assert f"{tmp_path}/out/form-0/aot/room: File too large; raise `ulimit -f`" in ended.stderr
    assert not (tmp_path / "out" / "optimized.json").exists()
