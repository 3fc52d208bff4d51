"""The command line of the benchmark of whole nets, which takes too long to be run."""

from pathlib import Path

from click.testing import CliRunner

from benchmarks.optimize import BACKENDS, Request
from passnet.cli import main
from passnet.optimizer.backends.registry import all_backends


def test_passnet_takes_the_options_of_the_benchmark(tmp_path: Path) -> None:
    request = Request("timm/none", 1, tmp_path, batch=2, authors=["compiler"])
    result = CliRunner().invoke(main, request.arguments())
    assert result.exit_code == 2
    assert "timm/none" in result.output, result.output
    assert "option" not in result.output


def test_the_backends_of_the_benchmark_exist() -> None:
    assert set(BACKENDS) <= set(all_backends())
