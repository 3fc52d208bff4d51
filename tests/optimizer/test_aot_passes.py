"""Passes within a package of AOTInductor: kernels are called, and all else is seen through."""

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch._inductor import aoti_compile_and_package

import passnet
from passnet.core.records.folders import CACHE_VARIABLE
from passnet.errors import BackendError, InputError
from passnet.optimizer.backends.backend import build_backend, load_backend
from passnet.optimizer.backends.graphs import CHOSEN_FOLDER, rewritten_program
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import NetCall
from passnet.passes.folder import LIST_FILE
from passnet.passes.kernel_op import kernels_of
from tests.optimizer.nets import block

PASS = '''
import torch
from passnet.passes import cpp

SOURCE = """
#include <cstdint>
extern "C" const char* rectify(const float* x, float* out, int64_t count, float factor,
                               bool is_on) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] > 0 && is_on ? x[i] * factor : 0;
  return x[0] == 7 ? "seven" : nullptr;
}
"""
rectify = cpp.kernel(SOURCE, "rectify")

def pattern(x):
    return torch.relu(x)

def replacement_args(x):
    return (x,)

def rectified(x):
    out = cpp.empty_strided(x.shape, x.stride(), x.dtype)
    rectify(x, out, x.numel(), 3.0, True)  # not 1, so that one sees that it is called
    return out

def replacement_func():
    return rectified
'''
BODY = PASS[PASS.index("    out =") : PASS.index("\ndef replacement_func")]
OF_TORCH = PASS.replace(BODY, "    return x.clamp(min=0)\n")
MISFIT = PASS.replace(BODY, "    return x.clamp(min=0).double()\n")
LATE = PASS.replace("rectify = ", "make = lambda: ").replace("    rectify(", "    make()(")
"""A pass that makes its kernel at the first call."""

SUM = """
def pattern(x, y):
    return x + y

def replacement_args(x, y):
    return (x, y)

def added(x, y):
    return x.add(y).clone()

def replacement_func():
    return added
"""
ADDRESS = OF_TORCH.replace("    return x.clamp", "    x.data_ptr()\n    return x.clamp")


def write_pass(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "Rectify.py").write_text(text)
    (folder / LIST_FILE).write_text(json.dumps(["Rectify"]))
    return folder


def block_call() -> NetCall:
    return NetCall(block(), (torch.randn(2, 8),), {"y": torch.randn(2, 8)})


def tripled(call: NetCall) -> list[torch.Tensor]:
    """What the net returns with a ReLU that multiplies by 3."""
    return list(NetCall(call.net, call.args, {**call.kwargs, "scale": 6.0}).outputs)


def test_a_replacement_is_traced_to_its_ops_and_kernels(tmp_path: Path) -> None:
    call = block_call()
    kernels = rewritten_program(call, [write_pass(tmp_path / "kernel", PASS)])
    [code] = kernels_of(kernels.graph).values()
    assert (code.name, code.kinds, code.elements) == ("rectify", "pwnnn", "fflf?")
    program = rewritten_program(call, [write_pass(tmp_path / "torch", OF_TORCH)])
    targets = {node.target for node in program.graph.nodes}
    assert torch.ops.aten.clamp.default in targets and not kernels_of(program.graph)


class Counting(torch.nn.Module):
    """A net that writes into its argument and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)  # type: ignore[operator]
        return torch.relu(x.add_(1)) + self.calls


def test_an_export_leaves_a_net_and_its_example_as_they_were(tmp_path: Path) -> None:
    net, x = Counting().eval(), torch.ones(2, 8)
    folder = write_pass(tmp_path / "kernel", PASS)
    program = passnet.export_with_passes(net, x, passes=folder)
    assert torch.equal(x, torch.ones(2, 8)) and net.calls.item() == 0
    with torch.no_grad():
        [found] = program.module()(x.clone())
    torch.testing.assert_close(found, torch.full((2, 8), 2 * 3.0 + 1))  # its ReLU times 3
    with pytest.raises(InputError, match="give a pass folder"):
        passnet.export_with_passes(net, x, passes=[])


LOADED = """
import sys, torch, passnet
passnet.inductor_pass(sys.argv[1])
x = torch.arange(16.0).view(2, 8)
print(torch._inductor.aoti_load_package(sys.argv[2])(x, x)[0].sum().item())
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [PASS, LATE], ids=["at load", "at the first call"])
def test_a_package_of_an_exported_program_is_loaded_elsewhere(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    call, folder = block_call(), write_pass(tmp_path / "kernel", text)
    program = passnet.export_with_passes(call.net, *call.tensors(), passes=folder)
    assert kernels_of(program.graph)
    path = aoti_compile_and_package(program, package_path=str(tmp_path / "net.pt2"))
    x = torch.arange(16.0).view(2, 8)
    expected = tripled(NetCall(call.net, (x,), {"y": x}))[0].sum().item()
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(folder), path],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout.splitlines()[-1]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "why"),
    [(MISFIT, "returns float64"), (ADDRESS, "RuntimeError")],
    ids=["form", "addresses"],
)
def test_a_replacement_that_cannot_be_put_in_gives_way(
    text: str, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    passes = [write_pass(tmp_path / "bad", text), write_pass(tmp_path / "good", SUM)]
    with caplog.at_level(logging.WARNING, "passnet"):
        program = rewritten_program(block_call(), passes)
    assert why in caplog.text and "the original ops stay" in caplog.text
    targets = {node.target for node in program.graph.nodes}
    assert {torch.ops.aten.relu.default, torch.ops.aten.clone.default} <= targets


def test_a_way_all_of_whose_passes_give_way_is_none(tmp_path: Path) -> None:
    passes = [write_pass(tmp_path / "bad", MISFIT)]
    with pytest.raises(BackendError, match="no pass can be in a package: Rectify: its replacement "
                       "returns float64"):  # fmt: skip
        rewritten_program(block_call(), passes)


@pytest.mark.xdist_group("inductor")
def test_a_package_with_passes_calls_their_kernels_and_reads_weights_as_they_are(
    tmp_path: Path,
) -> None:
    call = block_call()
    write_pass(tmp_path / CHOSEN_FOLDER / "000", PASS)
    entry = build_backend("aot_passes", BACKENDS["aot_passes"], call, tmp_path / "aot_passes")
    torch.testing.assert_close(list(entry.run(call.tensors())), tripled(call))
    assert entry.plain is None  # it takes the tensors alone, and the net one of them by name
    with torch.no_grad():
        call.net.linear.weight.add_(1.0)  # type: ignore[operator,union-attr]
    torch.testing.assert_close(list(entry.run(call.tensors())), tripled(call))
    with torch.no_grad():
        call.net.linear.weight.zero_()  # type: ignore[operator,union-attr]
        call.net.linear.bias.fill_(7.0)  # type: ignore[operator,union-attr]
    with pytest.raises(RuntimeError):  # of the kernel
        entry.run(call.tensors())
    (tmp_path / "aot_passes" / "kernels" / "kernels.json").unlink()
    with pytest.raises(InputError, match="cannot read .*kernels.json"):
        load_backend("aot_passes", BACKENDS["aot_passes"], call, tmp_path / "aot_passes")


IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
import torch
from passnet.optimizer.backends.backend import load_backend
from passnet.optimizer.backends.registry import BACKENDS
from tests.optimizer.test_aot_passes import block_call, tripled

call = block_call()
for folder in sys.argv[2:]:
    entry = load_backend(sys.argv[1], BACKENDS[sys.argv[1]], call, Path(folder))
    torch.testing.assert_close(list(entry.run(call.tensors())), tripled(call))
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["aot_passes", "aot_passes_frozen"])
def test_packages_with_passes_are_had_back_elsewhere(engine: str, tmp_path: Path) -> None:
    call = block_call()
    write_pass(tmp_path / "one" / CHOSEN_FOLDER / "000", PASS)
    other = PASS.replace("bool is_on", "bool is_on, double more")
    other = other.replace("3.0, True)", "3.0, True, 1.5)")
    write_pass(tmp_path / "two" / CHOSEN_FOLDER / "000", other)
    folders = []
    for name in ("one", "two"):
        build_backend(engine, BACKENDS[engine], call, tmp_path / name / engine)
        shutil.move(tmp_path / name / engine, tmp_path / f"moved-{name}")
        folders.append(str(tmp_path / f"moved-{name}"))
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, engine, *folders]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
