"""Libraries that are installed and cannot be imported: one sentence names them."""

import sys

import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.core.jobs.executors import run_ray
from passnet.errors import InputError


def test_a_broken_ray_is_named(broken):
    broken("ray", "RuntimeError('no cluster')")
    with pytest.raises(InputError, match="Ray cannot be imported: RuntimeError: no cluster"):
        list(run_ray(["net"], lambda runner, name: name, 1))


def test_a_broken_inspect_is_named_before_anything_is_written(broken, monkeypatch, tmp_path):
    broken("inspect_ai", "AttributeError('no such type')")
    for name in [name for name in sys.modules if name.startswith("passnet.agent.authors.inspect")]:
        monkeypatch.delitem(sys.modules, name)
    command = ["agent", "run", "--suite", "demo-small", "--llm", "mockllm/model", "--out"]
    result = CliRunner().invoke(main, [*command, str(tmp_path / "run")])
    assert result.exit_code == 2
    assert result.output.startswith(
        "passnet: inspect_ai, which asks llms, cannot be imported: AttributeError: no such type"
    )
    assert not (tmp_path / "run").exists()
