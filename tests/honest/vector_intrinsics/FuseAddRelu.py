"""relu(x + y) eight floats at a time by AVX; on other processors the tail loop does it all."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
#if defined(__AVX__)
#include <immintrin.h>
#endif

extern "C" void add_relu(const float* x, const float* y, float* out, int64_t n) {
  int64_t i = 0;
#if defined(__AVX__)
  const __m256 zero = _mm256_setzero_ps();
  for (; i + 8 <= n; i += 8) {
    __m256 sum = _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i));
    _mm256_storeu_ps(out + i, _mm256_max_ps(sum, zero));
  }
#endif
  for (; i < n; i++) out[i] = x[i] + y[i] > 0 ? x[i] + y[i] : 0.0f;
}
"""
ADD_RELU = cpp.kernel(SOURCE, "add_relu", "pppn")


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def add_relu(x, y):
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    x, y = x.contiguous(), y.contiguous()
    ADD_RELU(x.data_ptr(), y.data_ptr(), out.data_ptr(), out.numel())
    return out


def replacement_func():
    return add_relu
