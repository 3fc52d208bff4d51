// The products of low_bit_products.h, for the tests to call.

#include "packed/low_bit_products.h"

namespace low_bit = passnet::low_bit;

// Multiplies rows by weights that it packs first; 1 for weights and 2 for rows that are not finite.
extern "C" int product(const int64_t* sizes, const float* weights, const float* x, float* y) {
  int64_t rows = sizes[0];
  low_bit::Weights to{sizes[1], sizes[2], static_cast<int>(sizes[3])};
  std::vector<uint8_t> bytes(to.padded() * to.bytes_of_output(), 255);
  std::vector<float> scales(to.padded() * to.scales_of_output(), NAN);
  to.bytes = bytes.data(), to.scales = scales.data();
  if (!low_bit::pack(to, weights)) return 1;
  return low_bit::multiply(to, x, rows, y) ? 0 : 2;
}
