// Products of some rows by weights that lie in no near cache, in the layout of `direct::pack`.
//
// In a net, weights come from memory at each call, and with some tens of rows that takes as long as to compute.
// Here each part of a panel of weights is read once, for all rows, while the next part is on its way.
#pragma once

#include "direct_convolution.h"

namespace passnet::direct {

// Adds the products of a part to the sums of some rows; `sums` lie a panel apart. `ahead` is what to have read next.
template <int ROWS, int BLOCKS, int LINES>
[[gnu::noinline]] void add_part(const float* x, int64_t step, const float* by, int64_t depth, float* sums,
                                const float* ahead) {
  constexpr int PANEL = BLOCKS * LANES;
  Lanes own[ROWS][BLOCKS];
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
    for (int b = 0; b < BLOCKS; b++) own[i][b] = load(sums + i * PANEL + b * LANES);
  for (int64_t k = 0; k < depth; k++, by += PANEL) {
#pragma GCC unroll 3
    for (int line = 0; line < LINES; line++, ahead += LANES) __builtin_prefetch(ahead);
    Lanes weights[BLOCKS];
#pragma GCC unroll 3
    for (int b = 0; b < BLOCKS; b++) weights[b] = load(by + b * LANES);
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
      Lanes value = all(x[i * step + k]);
#pragma GCC unroll 3
      for (int b = 0; b < BLOCKS; b++) own[i][b] += value * weights[b];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
    for (int b = 0; b < BLOCKS; b++) store(sums + i * PANEL + b * LANES, own[i][b]);
}

// The sums of all rows by one panel, which is `in` long.
template <int BLOCKS>
void add_panel(const float* x, int64_t rows, int64_t in, const float* by, float* sums) {
  constexpr int PANEL = BLOCKS * LANES;
  const int64_t num_tiles = (rows + PIXELS - 1) / PIXELS, most = (rows + num_tiles - 1) / num_tiles;
  const int64_t deepest = rows <= 64 ? 64 : 256;  // what fits into the nearest cache
  for (int64_t first = 0; first < in; first += deepest) {
    int64_t depth = std::min(deepest, in - first), lines = depth * BLOCKS;
    const float *part = by + first * PANEL, *next = part + depth * PANEL;
    for (int64_t row = 0, tile = 0; row < rows; tile++) {
      int64_t count = std::min(most, rows - row);
      auto add = [&]<int ROWS>(std::integral_constant<int, ROWS>) {
        const float* from = x + row * in + first;
        float* to = sums + row * PANEL;
        if (num_tiles >= BLOCKS) add_part<ROWS, BLOCKS, 1>(from, in, part, depth, to, next + tile * lines / num_tiles * LANES);
        else add_part<ROWS, BLOCKS, BLOCKS>(from, in, part, depth, to, tile ? part : next);
      };
      [&]<int... I>(std::integer_sequence<int, I...>) {
        ((count == I + 1 && (add(std::integral_constant<int, I + 1>()), true)) || ...);
      }(std::make_integer_sequence<int, PIXELS>());
      row += count;
    }
  }
}

// A product of rows, whose weights are read once.
template <Activation KIND>
void stream(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish) {
  int64_t rows = shape.num_pixels(), in = shape.in_channels, out = shape.out_channels;
  int64_t vectors = vectors_of(out), num_panels = (vectors + MOST_BLOCKS - 1) / MOST_BLOCKS;
  at::parallel_for(0, num_panels, std::max<int64_t>(1, 262144 / (rows * in * MOST_BLOCKS)), [&](int64_t begin, int64_t end) {
    std::vector<float> sums(rows * MOST_BLOCKS * LANES);
    for (int64_t panel = begin; panel < end; panel++) {
      int64_t first = panel * MOST_BLOCKS, blocks = blocks_from(first, vectors), pitch = blocks * LANES;
      const float* own = by + first * LANES * in;
      std::fill(sums.begin(), sums.begin() + rows * pitch, 0.0f);
      if (blocks == 3) add_panel<3>(x, rows, in, own, sums.data());
      else if (blocks == 2) add_panel<2>(x, rows, in, own, sums.data());
      else add_panel<1>(x, rows, in, own, sums.data());
      for (int64_t row = 0; row < rows; row++)
        for (int64_t b = 0; b < blocks; b++) {
          int64_t channel = (first + b) * LANES, lanes = std::min<int64_t>(LANES, out - channel), place = row * out + channel;
          Lanes value = load(sums.data() + row * pitch + b * LANES);
          if (finish.bias) value += load_some(finish.bias + channel, lanes);
          if (finish.other) value += load_some(finish.other + place, lanes);
          store_some(y + place, finish.of<KIND>(value), lanes);
        }
    }
  });
}

}  // namespace passnet::direct
