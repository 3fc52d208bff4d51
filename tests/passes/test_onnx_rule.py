"""Passes as rewrite rules of onnxscript."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

from passnet.errors import PassError
from passnet.passes.onnx_op import DOMAIN, write_library
from passnet.passes.onnx_rule import rewrite_rules
from tests.conftest import ROOT

pytest.importorskip("onnx", reason="pip install 'passnet[runtimes]'")
pytest.importorskip("onnxscript", reason="pip install 'passnet[runtimes]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'passnet[runtimes]'")

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples" / "passes"


class Residual(torch.nn.Module):
    """A linear layer, added to its argument, under a layer norm; the sum is returned too."""

    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8, eps)

    def forward(self, x: torch.Tensor) -> Any:
        total = self.linear(x) + x
        return total * 2, self.norm(total)


class OwnWeight(Residual):
    """A layer norm whose weight is computed from what it norms."""

    def forward(self, x: torch.Tensor) -> Any:
        total = self.linear(x) + x
        weight = total.mean((0, 1))
        return torch.nn.functional.layer_norm(total, (8,), weight, self.norm.bias)


class Gated(torch.nn.Module):
    """A gate for each channel of an image, or for each pixel."""

    def forward(self, image: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return image * torch.sigmoid(gate)


class Gelu(torch.nn.Module):
    """GELU as GPT-2 spells it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = x + 0.044715 * torch.pow(x, 3.0)
        return torch.relu(0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * inner)))


def residual_rules(eps: float = 1e-5) -> list[Any]:
    x, weight = torch.rand(2, 3, 8), torch.rand(8)
    return rewrite_rules(EXAMPLES / "residual_layer_norm", x, x, weight, weight, (8,), eps)


def exported(net: torch.nn.Module, *args: torch.Tensor, dims: Any = None) -> Any:
    shapes = None if dims is None else (dims,)
    return torch.onnx.export(net.eval(), args, dynamo=True, verbose=False, dynamic_shapes=shapes)


def num_rewritten(program: Any, rules: list[Any]) -> int:
    from onnxscript.rewriter import rewrite

    rewrite(program.model, rules)
    return sum(node.domain == DOMAIN for node in program.model.graph)


def outputs(program: Any, folder: Path, x: torch.Tensor) -> list[torch.Tensor]:
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(str(write_library(program.model, folder)))
    program.save(folder / "net.onnx")
    run = onnxruntime.InferenceSession(folder / "net.onnx", options)
    [port] = run.get_inputs()
    return [torch.from_numpy(array) for array in run.run(None, {port.name: x.numpy()})]


def test_a_rule_of_two_outputs_puts_a_kernel_into_a_file(tmp_path: Path) -> None:
    net, x = Residual(), torch.randn(2, 5, 8)
    program = exported(net, x)
    assert num_rewritten(program, residual_rules()) == 1
    torch.testing.assert_close(outputs(program, tmp_path, x), [*net(x)])


def test_a_kernel_takes_the_sizes_that_vary_in_a_file(tmp_path: Path) -> None:
    net = Gelu()
    program = exported(net, torch.randn(2, 6), dims={0: Dim.DYNAMIC, 1: Dim.DYNAMIC})
    assert num_rewritten(program, rewrite_rules(EXAMPLES / "gelu_tanh", torch.rand(3, 4, 5))) == 1
    for x in (torch.randn(2, 6), torch.randn(7, 3)):
        torch.testing.assert_close(outputs(program, tmp_path, x), [net(x)])


def test_other_literals_what_guards_refuse_and_cycles_stay() -> None:
    x = torch.randn(2, 5, 8)
    assert num_rewritten(exported(Residual(1e-3), x), residual_rules()) == 0
    assert num_rewritten(exported(Residual(1e-3), x), residual_rules(1e-3)) == 1
    assert num_rewritten(exported(OwnWeight(), x), residual_rules()) == 0
    image, gate = torch.rand(2, 3, 4, 4), torch.rand(2, 3, 1, 1)
    rules = rewrite_rules(EXAMPLES / "squeeze_excite_scale", gate, image)
    assert num_rewritten(exported(Gated(), image, gate), rules) == 1
    assert num_rewritten(exported(Gated(), image, image), rules) == 0


def test_a_rule_of_too_few_arguments_is_refused() -> None:
    with pytest.raises(PassError, match="its pattern takes x, y, weight, bias, shape, eps"):
        rewrite_rules(EXAMPLES / "residual_layer_norm", torch.rand(2, 8))
