// Attention of a few rows to past keys and new ones, which lie apart: a step of a decoder.
#pragma once

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <vector>

#include "direct_convolution.h"

namespace passnet::attention {

using direct::LANES;
using direct::Lanes;
using direct::load_some;

// Rows of numbers of one batch and head, `stride` apart.
struct Rows {
  const float* from;
  int64_t count, stride;
  const float* row(int64_t number) const { return from + number * stride; }
};

inline float sum(Lanes values) {
  float total = 0;
  for (int lane = 0; lane < LANES; lane++) total += values[lane];
  return total;
}

inline float dot(const float* a, const float* b, int64_t size) {
  Lanes sums{};
  for (int64_t i = 0; i < size; i += LANES) sums += load_some(a + i, size - i) * load_some(b + i, size - i);
  return sum(sums);
}

// Takes exponentials of scores less their greatest one; returns their sum. NaN stays.
inline float exponentials(float* scores, int64_t count) {
  float most = scores[0];
  for (int64_t i = 1; i < count; i++) most = scores[i] > most ? scores[i] : most;
  Lanes sums{};
  for (int64_t i = 0; i < count; i += LANES) {
    Lanes values = direct::exponential(load_some(scores + i, count - i) - direct::all(most));
    direct::store_some(scores + i, values, count - i);
    sums += load_some(scores + i, count - i);
  }
  return sum(sums);
}

// One row of a query: its scores, where `shown` is not null and 0 the least number, and its result.
inline void attend(const float* query, const Rows (&keys)[2], const Rows (&values)[2], int64_t size, int64_t width,
                   const bool* shown, std::vector<float>& scores, float* to) {
  int64_t count = keys[0].count + keys[1].count, at = 0;
  for (const Rows& part : keys)
    for (int64_t i = 0; i < part.count; i++, at++)
      scores[at] = shown && !shown[at] ? std::numeric_limits<float>::lowest() : dot(query, part.row(i), size);
  float factor = 1 / exponentials(scores.data(), count);
  for (int64_t first = 0; first < width; first += 4 * LANES) {
    Lanes sums[4] = {};
    at = 0;
    for (const Rows& part : values)
      for (int64_t i = 0; i < part.count; i++, at++) {
        const float* row = part.row(i) + first;
        Lanes share = direct::all(scores[at]);
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++)
          if (first + v * LANES < width) sums[v] += share * load_some(row + v * LANES, width - first - v * LANES);
      }
    for (int v = 0; v < 4; v++)
      if (first + v * LANES < width)
        direct::store_some(to + first + v * LANES, sums[v] * direct::all(factor), width - first - v * LANES);
  }
}

}  // namespace passnet::attention
