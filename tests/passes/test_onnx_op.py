"""Kernels as custom ops of ONNX Runtime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim, export

from passnet.errors import PassError
from passnet.passes import cpp
from passnet.passes.onnx_op import onnx_program, write_library

pytest.importorskip("onnx", reason="pip install 'passnet[runtimes]'")
pytest.importorskip("onnxscript", reason="pip install 'passnet[runtimes]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'passnet[runtimes]'")

pytestmark = pytest.mark.slow

FILL = """
#include <cstdint>
extern "C" const char* fill(const float* x, double* out, bool on, int8_t a, int64_t n, uint32_t c,
                            float d, double e, int32_t* count) {
  for (int64_t i = 0; i < n; ++i) out[i] = on ? x[i] + a + c + d + e : 0;
  count[0] = n;
  return x[0] == 7 ? "seven" : nullptr;
}
"""


class Net(torch.nn.Module):
    """A function as a net in evaluation mode."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def exported(function: Callable[..., Any], *args: torch.Tensor, dims: Any = None) -> Any:
    shapes = None if dims is None else (dims,)
    return onnx_program(export(Net(function), args, strict=False, dynamic_shapes=shapes))


def session(program: Any, folder: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(str(write_library(program.model, folder)))
    program.save(folder / "net.onnx")
    return onnxruntime.InferenceSession(folder / "net.onnx", options)


def filled(fill: Callable[..., None]) -> Callable[[torch.Tensor], Any]:
    def function(x: torch.Tensor) -> Any:
        out, count = torch.empty(x.shape, dtype=torch.float64), torch.empty(1, dtype=torch.int32)
        fill(x, out, True, -3, x.numel(), 3 * 10**9, 0.5, -0.1, count)
        return out * 2, count

    return function


def test_an_op_takes_every_kind_of_number_and_fills_several_tensors_of_sizes_that_vary(
    tmp_path: Path,
) -> None:
    function = filled(cpp.kernel(FILL, "fill"))
    varying = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    run = session(exported(function, torch.rand(2, 3), dims=(varying,)), tmp_path)
    [port] = run.get_inputs()
    for x in (torch.rand(2, 3), torch.rand(5, 4)):
        out, count = run.run(None, {port.name: x.numpy()})
        assert torch.equal(torch.from_numpy(out), function(x)[0])
        assert count.tolist() == [x.numel()]


def test_the_text_of_a_kernel_s_error_is_that_of_the_run(tmp_path: Path) -> None:
    run = session(exported(filled(cpp.kernel(FILL, "fill")), torch.rand(2, 3)), tmp_path)
    [port] = run.get_inputs()
    with pytest.raises(Exception, match="kernel fill: seven"):
        run.run(None, {port.name: torch.full((2, 3), 7.0).numpy()})


def test_files_of_a_loaded_library_stay_as_they_are(tmp_path: Path) -> None:
    program = exported(filled(cpp.kernel(FILL, "fill")), torch.rand(2, 3))
    library = write_library(program.model, tmp_path)
    before = library.stat().st_ino, library.stat().st_mtime_ns
    write_library(program.model, tmp_path)
    assert (library.stat().st_ino, library.stat().st_mtime_ns) == before


COPY = """
#include <cstdint>
extern "C" void copied(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i];
}
extern "C" void bytes(const char* x, char* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i];
}
"""


def test_kernels_that_no_op_can_be_are_refused() -> None:
    copied, of_bytes = cpp.kernel(COPY, "copied"), cpp.kernel(COPY, "bytes")
    x = torch.rand(2, 3)

    def call(kernel: Callable[..., None], x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        kernel(x, out, 6)
        return out

    with pytest.raises(PassError, match="argument 1 is not contiguous"):
        exported(lambda x: call(copied, x.T, torch.empty(3, 2)), x)
    with pytest.raises(PassError, match="argument 2 is written and not a tensor of its own"):
        exported(lambda x: call(copied, x, torch.zeros(2, 3)), x)
    with pytest.raises(PassError, match="argument 2 is written and not a tensor of its own"):
        exported(lambda x: call(copied, x, torch.empty(4, 3)[:2]), x)
    with pytest.raises(PassError, match="bytes of any dtype"):
        exported(lambda x: call(of_bytes, x, torch.empty(2, 3)), x)
