"""The kernel, in a module that passes share under a name of their own."""

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void add_relu(const float* x, const float* y, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i] < 0 ? 0.0f : x[i] + y[i];
}
"""
ADD_RELU = cpp.kernel(SOURCE, "add_relu", "pppn")
