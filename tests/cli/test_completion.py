"""What a shell completes: names of suites, tasks, candidates and nets, without importing torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.data.capture.known_nets import remember_nets

SCRIPT = """
import sys
from passnet.cli import main
try:
    main(prog_name="passnet")
finally:
    assert "torch" not in sys.modules, "torch is imported"
"""


def completed(words: str, cache: Path) -> list[str]:
    """Return the completions of the last of the words, or its kind if that is a path."""
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={
            **os.environ,
            "PASSNET_CACHE": str(cache),
            "_PASSNET_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        },
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0 and not child.stderr, child.stderr
    return [line.replace("plain,", "") for line in child.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("passnet be", ["bench"]),
        ("passnet bench score --js", ["--json"]),
        ("passnet bench score --by dt", ["dtype"]),
        ("passnet suite list demo-s", ["demo-small"]),
        ("passnet bench run --suite demo-h", ["demo-held-out"]),
        ("passnet bench run --held-out demo-h", ["demo-held-out"]),
        ("passnet bench run --held-out demo-held-out --task gelu", ["gelu_tanh"]),
        ("passnet bench run --suite passbench-v1 --task exp-mul-add-9", ["exp-mul-add-92b6636d"]),
        ("passnet suite show demo --task pool", ["pool_concat"]),
        ("passnet bench run --candidate induc", ["inductor", "inductor-precise"]),
        ("passnet bench run --candidate eager@di", ["eager@direct"]),
        ("passnet bench run --candidate exam", ["dir,exam"]),
        ("passnet optimize torchv", ["torchvision/"]),
        ("passnet optimize torchvision/resnet1", ["torchvision/resnet18"]),
        ("passnet extract --list torchvision/resnet1", ["torchvision/resnet18"]),
        ("passnet profile timm/", ["file,timm/"]),
    ],
)
def test_a_shell_completes(words: str, expected: list[str], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PASSNET_CACHE", str(tmp_path))
    remember_nets("torchvision", ["torchvision/resnet18", "torchvision/vit_b_16"])
    assert completed(words, tmp_path) == expected


def test_nets_are_known_once_their_library_was_listed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PASSNET_CACHE", str(tmp_path))
    words, name = "passnet optimize torchvision/resnet18", "torchvision/resnet18"
    assert completed(words, tmp_path) == [f"file,{name}"]
    assert CliRunner().invoke(main, ["extract", "--list", name]).exit_code == 0
    assert completed(words, tmp_path) == [name]
