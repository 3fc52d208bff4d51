"""Kernels as ops: a tracer sees them, and they are not called without memory."""

import contextlib
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


EVERY_NUMBER = """
#include <cstdint>
extern "C" void write(
    double* out, bool on, int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f,
    uint32_t g, uint64_t h, float i, double j) {
  double values[] = {double(on), double(a), double(b), double(c), double(d), double(e), double(f),
                     double(g), double(h), double(i), j};
  for (int k = 0; k < 11; ++k) out[k] = values[k];
}
"""


def test_an_op_takes_every_kind_of_number() -> None:
    values = (True, -3, -300, -70000, -(2**40), 200, 60000, 3 * 10**9, 2**52, 0.5, -0.1)
    write = cpp.kernel(EVERY_NUMBER, "write")
    by_call, by_op = torch.zeros(11).double(), torch.zeros(11).double()
    write(by_call, *values)
    last_op()(by_op, *values)
    assert by_op.tolist() == by_call.tolist() == [float(value) for value in values]


FAILING = """
extern "C" const char* fail(const float* x, float* out) { return x[0] < 0 ? "below 0" : nullptr; }
"""


def test_an_op_refuses_other_dtypes_and_says_what_its_kernel_says() -> None:
    cpp.kernel(FAILING, "fail")
    op, one, out = last_op(), torch.ones(1), torch.ones(1)
    op(one, out)
    with pytest.raises(RuntimeError, match="^kernel fail: below 0$"):
        op(-one, out)
    with pytest.raises(RuntimeError, match="^kernel fail: a tensor is of another dtype"):
        op(one.double(), out)


def last_op() -> torch._ops.OpOverload:
    return cpp.kernel_ops()[-1]()


def test_an_op_keeps_no_tensor() -> None:
    cpp.kernel(FAILING, "fail")
    op, one = last_op(), torch.ones(1)
    counts = [count_references(one)]
    for value in (one, -one):
        with contextlib.suppress(RuntimeError):
            op(one, value)
    counts.append(count_references(one))
    assert counts[0] == counts[1]


def count_references(tensor: torch.Tensor) -> int:
    return int(tensor._use_count())  # type: ignore[attr-defined]


def test_a_kernel_is_not_called_with_tensors_that_have_no_memory() -> None:
    net = Scaled(cpp.kernel(SCALE, "scale"))
    with FakeTensorMode():
        assert net(torch.empty(3)).shape == (3,)


def test_a_kernel_that_takes_a_character_is_no_op() -> None:
    source = 'extern "C" void fill(float* x, char letter) { x[0] = letter; }'
    fill = cpp.kernel(source, "fill")
    with FakeTensorMode(), pytest.raises(PassError, match="parameter 2 is a char; take an int8_t"):
        fill(torch.empty(1), b"a")
