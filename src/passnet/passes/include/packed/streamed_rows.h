// Products of some rows by weights that lie in no near cache, in the layout of `direct::pack`.
//
// In a net, weights come from memory at each call, and with some tens of rows that takes as long as to compute.
// Here each part of a panel of weights is read once, for all rows, while the next part is on its way. The windows of
// a small image are rows, too.
#pragma once

#include "direct_convolution.h"

namespace passnet::direct {

constexpr int64_t MOST_ROWS = 64, DEPTH = 64;  // of a part, which fits into the nearest cache with its sums

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

// The sums of some rows, `step` apart, by one panel, which is `in` long.
template <int BLOCKS>
void add_panel(const float* x, int64_t step, int64_t rows, int64_t in, const float* by, float* sums) {
  constexpr int PANEL = BLOCKS * LANES;
  const int64_t num_tiles = (rows + PIXELS - 1) / PIXELS, most = (rows + num_tiles - 1) / num_tiles;
  for (int64_t first = 0; first < in; first += DEPTH) {
    int64_t depth = std::min(DEPTH, in - first), lines = depth * BLOCKS;
    const float *part = by + first * PANEL, *next = part + depth * PANEL;
    for (int64_t row = 0, tile = 0; row < rows; tile++) {
      int64_t count = std::min(most, rows - row);
      auto add = [&]<int ROWS>(std::integral_constant<int, ROWS>) {
        const float* from = x + row * step + first;
        float* to = sums + row * PANEL;
        const float* share = next + tile * lines / num_tiles * LANES;
        if (num_tiles >= BLOCKS) add_part<ROWS, BLOCKS, 1>(from, step, part, depth, to, share);
        else add_part<ROWS, BLOCKS, BLOCKS>(from, step, part, depth, to, tile ? part : next);
      };
      [&]<int... I>(std::integer_sequence<int, I...>) {
        ((count == I + 1 && (add(std::integral_constant<int, I + 1>()), true)) || ...);
      }(std::make_integer_sequence<int, PIXELS>());
      row += count;
    }
  }
}

// A product of rows, some of them at once, whose weights are read once for these.
inline void stream(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish) {
  int64_t rows = shape.num_pixels(), in = shape.in_channels, out = shape.out_channels;
  int64_t vectors = vectors_of(out), num_panels = (vectors + MOST_BLOCKS - 1) / MOST_BLOCKS;
  int64_t num_parts = (rows + MOST_ROWS - 1) / MOST_ROWS, most = (rows + num_parts - 1) / num_parts;
  int64_t grain = std::max<int64_t>(1, 262144 / (most * in * MOST_BLOCKS));
  at::parallel_for(0, num_parts * num_panels, grain, [&](int64_t begin, int64_t end) {
    std::vector<float> sums(most * MOST_BLOCKS * LANES);
    for (int64_t number = begin; number < end; number++) {
      int64_t top = number / num_panels * most, count = std::min(most, rows - top);
      int64_t first = number % num_panels * MOST_BLOCKS, blocks = blocks_from(first, vectors), pitch = blocks * LANES;
      const float *own = by + first * LANES * in, *from = x + top * shape.in_step();
      std::fill(sums.begin(), sums.begin() + count * pitch, 0.0f);
      if (blocks == 3) add_panel<3>(from, shape.in_step(), count, in, own, sums.data());
      else if (blocks == 2) add_panel<2>(from, shape.in_step(), count, in, own, sums.data());
      else add_panel<1>(from, shape.in_step(), count, in, own, sums.data());
      int64_t channel = first * LANES;
      finish.put_rows(sums.data(), pitch, count, std::min(pitch, out - channel), y, top * out + channel, out, channel);
    }
  });
}

// A convolution of one group as a product of its windows.
inline Shape rows_of_windows(const Shape& shape) {
  Shape rows;
  rows.width = rows.out_width = shape.num_pixels();
  rows.in_channels = shape.taps() * shape.in_channels, rows.out_channels = shape.out_channels;
  return rows;
}

// Copies the window of each pixel, line by line, with zeros for what is outside of the image.
inline void gather(const Shape& shape, const float* x, float* to) {
  const int64_t channels = shape.in_channels, line = shape.columns * channels, step = shape.in_step();
  at::parallel_for(0, shape.images * shape.out_height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; number++) {
      const float* image = x + number / shape.out_height * shape.height * shape.width * step;
      int64_t top = number % shape.out_height * shape.stride[0] - shape.padding[0];
      float* place = to + number * shape.out_width * shape.rows * line;
      for (int64_t column = 0; column < shape.out_width; column++)
        for (int64_t r = 0; r < shape.rows; r++, place += line) {
          int64_t row = top + r * shape.dilation[0], left = column * shape.stride[1] - shape.padding[1];
          auto copy = [&](int64_t from, int64_t count, float* own) {  // pixels of this line from `left` on
            int64_t before = std::clamp<int64_t>(-from, 0, count);
            int64_t after = std::clamp<int64_t>(from + count - shape.width, 0, count);
            if (row < 0 || row >= shape.height || before + after >= count) before = count, after = 0;
            std::fill(own, own + before * channels, 0.0f);
            if (before < count)
              std::memcpy(own + before * channels, image + (row * shape.width + from + before) * step,
                          (count - before - after) * channels * sizeof(float));
            std::fill(own + (count - after) * channels, own + count * channels, 0.0f);
          };
          if (shape.dilation[1] == 1 && step == channels) copy(left, shape.columns, place);
          else
            for (int64_t k = 0; k < shape.columns; k++) copy(left + k * shape.dilation[1], 1, place + k * channels);
        }
    }
  });
}

}  // namespace passnet::direct
