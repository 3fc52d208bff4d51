"""The blocks of docs/inductor.md, run as they stand."""

import contextlib
import io
from pathlib import Path

import pytest
import torch

from tests.conftest import ROOT
from tests.docs.pages import blocks

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it


class Gelu(torch.nn.Module):
    """The net of the page, as `torch.onnx` takes it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = 0.5 * x
        inner = x + 0.044715 * torch.pow(x, 3.0)
        return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


@pytest.mark.slow
def test_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    first, second, exported, _, _, _, third, fewer_bits = blocks(
        ROOT / "docs" / "inductor.md", "python"
    )
    names: dict[str, object] = {}
    uncached = torch._inductor.config.patch(force_disable_caches=True)
    with uncached, contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(first, names)
    assert printed.getvalue() == "1 match\n"
    with uncached:
        exec(f"{second}\nwith torch.no_grad():\n    z = fast(x)", names)
    torch.testing.assert_close(names["z"], names["y"])
    assert names["own"].num_matches == 1  # type: ignore[attr-defined]
    exec(exported, names)
    torch.testing.assert_close(names["z"], names["y"])
    ops = {str(node.target) for node in names["program"].graph.nodes}  # type: ignore[attr-defined]
    assert any(op.startswith("passnet_kernel.gelu_tanh") for op in ops)
    for block, tolerance in ((third, 1e-4), (fewer_bits, 0.05)):
        with uncached:
            exec(block, names)
        with torch.no_grad():
            right = names["net"](names["x"])  # type: ignore[operator]
        torch.testing.assert_close(names["y"], right, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
def test_the_blocks_for_onnx_runtime_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="pip install 'passnet[runtimes]'")
    monkeypatch.chdir(ROOT)
    first, _, _, _, third, fourth, *_ = (
        text.replace("/tmp/gelu", str(tmp_path))
        for text in blocks(ROOT / "docs" / "inductor.md", "python")
    )
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(first, names)
    exec(third, names)
    torch.testing.assert_close(torch.from_numpy(names["z"]), names["y"])  # type: ignore[arg-type]
    example = (torch.randn(64, 512),)
    torch.onnx.export(Gelu().eval(), example, tmp_path / "plain.onnx", dynamo=True, verbose=False)
    exec(fourth, names)
    assert "passnet" in names["model"].opset_imports  # type: ignore[attr-defined]
    assert (tmp_path / "rewritten.onnx").is_file()
