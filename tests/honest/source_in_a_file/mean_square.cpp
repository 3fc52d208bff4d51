// The mean of the squared difference of two rows, in eight partial sums.
#include <cstdint>

extern "C" void mean_square(const float* x, const float* y, float* out, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++, x += n, y += n) {
    float parts[8] = {};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (int64_t k = 0; k < 8; k++) parts[k] += (x[i + k] - y[i + k]) * (x[i + k] - y[i + k]);
    for (; i < n; i++) parts[0] += (x[i] - y[i]) * (x[i] - y[i]);
    float total = 0;
    for (float part : parts) total += part;
    out[r] = total / n;
  }
}
