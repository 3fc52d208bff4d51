"""The kernel of the pass beside it: rows in bfloat16, sums in float32."""

from passnet.passes import cpp

SOURCE = r"""
#include "passnet_kernel.h"
using namespace passnet;

extern "C" void rms_norm(const bf16* x, const bf16* w, bf16* out, int64_t rows, int64_t n,
                         float eps) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) {
    const bf16* row = x + r * n;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; i++) squares += load(row + i) * load(row + i);
    float scale = 1.0f / std::sqrt(squares / n + eps);
    for (int64_t i = 0; i < n; i++)
      store(out + r * n + i, load(w + i) * rounded<bf16>(load(row + i) * scale));
  }
}
"""
RMS_NORM = cpp.kernel(SOURCE, "rms_norm", "pppnnf")


def launch(x, weight, out, eps):
    n = weight.numel()
    RMS_NORM(x.data_ptr(), weight.data_ptr(), out.data_ptr(), x.numel() // n, n, eps)
