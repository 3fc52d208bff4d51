"""Nets with passes as ONNX files."""

from pathlib import Path

import pytest
import torch

import passnet
from passnet.errors import BackendError, InputError
from tests.conftest import ROOT

pytest.importorskip("onnx", reason="pip install 'passnet[runtimes]'")
pytest.importorskip("onnxscript", reason="pip install 'passnet[runtimes]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'passnet[runtimes]'")

pytestmark = pytest.mark.slow

PASSES = [ROOT / "examples" / "passes" / name for name in ("gelu_tanh", "residual_layer_norm")]


class Block(torch.nn.Module):
    """The end of a transformer's layer as GPT-2 spells it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.up(x)
        inner = hidden + 0.044715 * torch.pow(hidden, 3.0)
        active = 0.5 * hidden * (1.0 + torch.tanh(0.7978845608028654 * inner))
        return self.norm(self.down(active) + x)


def test_a_net_s_passes_are_custom_ops_of_its_file(tmp_path: Path) -> None:
    net, x = Block(), torch.randn(2, 5, 8)
    files = passnet.onnx_with_passes(net, x, passes=PASSES, path=tmp_path / "net.onnx")
    assert files.num_kernels == 2
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(str(moved / files.library.name))
    run = onnxruntime.InferenceSession(moved / files.net.name, options)
    [port] = run.get_inputs()
    for values in (x, torch.randn(2, 5, 8)):
        [y] = run.run(None, {port.name: values.numpy()})
        torch.testing.assert_close(torch.from_numpy(y), net(values))


def test_a_net_that_no_pass_matches_is_refused(tmp_path: Path) -> None:
    net = torch.nn.Linear(8, 8).eval()
    with pytest.raises(BackendError, match="no pass matches"):
        passnet.onnx_with_passes(net, torch.rand(2, 8), passes=PASSES, path=tmp_path / "net.onnx")
    with pytest.raises(InputError, match="training mode"):
        passnet.onnx_with_passes(
            net.train(), torch.rand(2, 8), passes=PASSES, path=tmp_path / "net.onnx"
        )
