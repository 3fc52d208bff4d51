"""Kernels as ops: a tracer sees them, and they are not called without memory."""

from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import export

from passnet.errors import PassError
from passnet.passes import cpp
from passnet.passes.kernel_op import kernels_of

SCALE = """
#include <cstdint>
extern "C" void scale(const float* x, float* out, int8_t count, float factor, bool is_on) {
  for (int i = 0; i < count; ++i) out[i] = is_on ? x[i] * factor : 0;
}
"""


class Scaled(torch.nn.Module):
    def __init__(self, scale: Callable[..., None]) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        self.scale(x, out, 3, 2.0, True)
        return out + 1


def test_a_traced_kernel_is_an_op_that_writes_what_the_kernel_does() -> None:
    net, x = Scaled(cpp.kernel(SCALE, "scale")), torch.arange(3.0)
    assert net(x).tolist() == [1.0, 3.0, 5.0]
    program = export(net, (x,), strict=False)
    [(op, code)] = kernels_of(program.graph).items()
    written = [param.alias_info is not None for param in op._schema.arguments]
    assert written == [False, True, False, False, False]
    assert (code.kinds, code.elements) == ("pwnnn", "ffbf?")
    assert torch.equal(program.module()(x), net(x))


def test_a_kernel_is_not_called_with_tensors_that_have_no_memory() -> None:
    net = Scaled(cpp.kernel(SCALE, "scale"))
    with FakeTensorMode():
        assert net(torch.empty(3)).shape == (3,)


def test_a_kernel_that_takes_a_character_is_no_op() -> None:
    source = 'extern "C" void fill(float* x, char letter) { x[0] = letter; }'
    fill = cpp.kernel(source, "fill")
    with FakeTensorMode(), pytest.raises(PassError, match="parameter 2 is a char; take an int8_t"):
        fill(torch.empty(1), b"a")
