"""The C++ text, compiled once at import."""

from passnet.passes import cpp

LINEAR_RELU = cpp.kernel(
    r"""
#include <cstdint>
extern "C" void linear_relu(const float* x, const float* w, const float* b, float* out,
                            int64_t rows, int64_t depth, int64_t width) {
  for (int64_t r = 0; r < rows; r++) {
    float* o = out + r * width;
    for (int64_t j = 0; j < width; j++) o[j] = b[j];
    for (int64_t k = 0; k < depth; k++)
#pragma omp simd
      for (int64_t j = 0; j < width; j++) o[j] += x[r * depth + k] * w[k * width + j];
    for (int64_t j = 0; j < width; j++) o[j] = o[j] < 0 ? 0.0f : o[j];
  }
}
""",
    "linear_relu",
    "ppppnnn",
)
