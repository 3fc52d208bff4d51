"""Kernels convert half precision to and from float as torch does, one by one and in registers."""

import numpy as np
import pytest
import torch

from passnet.core.records.folders import CACHE_VARIABLE
from passnet.passes import cpp

SOURCE = """\
#define PASSNET_VECTOR_BYTES %d
#include "inductor_vector.h"
using at::vec::convert, at::vec::VectorizedN;
using V = VectorizedN<at::Half, 1>;
using W = VectorizedN<float, 2>;
extern "C" void widen(const at::Half* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i];
}
extern "C" void narrow(const float* x, at::Half* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = at::Half(x[i]);
}
extern "C" void widen_registers(const at::Half* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += V::size())
    convert<float, 2, at::Half, 1>(V::loadu(x + i)).store(y + i);
}
extern "C" void narrow_registers(const float* x, at::Half* y, int64_t n) {
  for (int64_t i = 0; i < n; i += V::size())
    convert<at::Half, 1, float, 2>(W::loadu(x + i)).store(y + i);
}
"""
BITS = torch.arange(65536, dtype=torch.int32).to(torch.int16)
HALVES = BITS.view(torch.float16)


@pytest.fixture(scope="module", params=[64, 32])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):  # noqa: ANN201
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield SOURCE % request.param


@pytest.mark.parametrize("name", ["widen", "widen_registers"])
def test_every_half_is_read_as_torch_reads_it(name: str, source: str) -> None:
    actual = torch.empty(HALVES.shape)
    cpp.kernel(source, name)(HALVES, actual, HALVES.numel())
    expected = HALVES.float()
    assert torch.equal(actual.isnan(), expected.isnan())
    known = ~expected.isnan()
    assert torch.equal(actual.view(torch.int32)[known], expected.view(torch.int32)[known])


@pytest.mark.parametrize("name", ["narrow", "narrow_registers"])
def test_floats_are_rounded_to_halves_as_torch_rounds(name: str, source: str) -> None:
    random = np.random.default_rng(0)
    bits = [random.integers(0, 2**32, 2**20, dtype=np.uint32)]
    values = HALVES.float()
    between = (0.5 * (values + values.roll(1))).numpy().view(np.uint32)
    bits += [between, between + 1, between - 1, values.numpy().view(np.uint32)]
    x = torch.from_numpy(np.concatenate(bits).view(np.float32))
    actual = torch.empty(x.shape, dtype=torch.float16)
    cpp.kernel(source, name)(x, actual, x.numel())
    expected = x.to(torch.float16)
    assert torch.equal(actual.isnan(), expected.isnan())
    known = ~expected.isnan()
    assert torch.equal(actual.view(torch.int16)[known], expected.view(torch.int16)[known])
