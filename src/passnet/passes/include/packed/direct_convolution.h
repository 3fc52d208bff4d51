// Convolutions and products of rows by weights that were packed before: pixels, channels last.
//
// oneDNN takes 50 us to be called, more than all of a small convolution, and MKL is made for large
// matrices. Here, the sums of some pixels by some vectors of channels stay in registers, and what comes
// after them (bias, another tensor, activation) is computed on the way out.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include "activations.h"

namespace passnet::direct {

// 24 of 32 registers hold sums with AVX-512.
constexpr int PIXELS = LANES == 16 ? 8 : 4;
constexpr int MOST_BLOCKS = 3;  // vectors of channels whose sums are in registers at once

// Sizes of a convolution of images, or of a product: one pixel a row, and a window of 1.
struct Shape {
  int64_t images = 1, height = 1, width = 1, out_height = 1, out_width = 1;
  int64_t rows = 1, columns = 1;  // of the window
  int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};
  int64_t groups = 1, in_channels, out_channels;  // of all groups
  // Of three dimensions, whose images are the frames of the result; `depth` is of the window.
  int64_t frames = 1, out_frames = 1, depth = 1, frame_stride = 1, frame_padding = 0;
  int64_t in_pitch = 0;  // numbers from pixel to pixel of images that are some channels of others; 0 for all channels

  int64_t in_step() const { return in_pitch ? in_pitch : in_channels; }
  int64_t taps() const { return rows * columns; }
  int64_t in() const { return in_channels / groups; }
  int64_t out() const { return out_channels / groups; }
  int64_t num_pixels() const { return images * out_height * out_width; }
  bool is_rows() const {
    return taps() == 1 && stride[0] == 1 && stride[1] == 1 && padding[0] == 0 && padding[1] == 0;
  }
  bool is_depthwise() const { return groups == in_channels && groups == out_channels; }  // a window a channel
};

inline int64_t vectors_of(int64_t channels) { return (channels + LANES - 1) / LANES; }

inline int64_t packed_size(const Shape& shape) {
  if (shape.is_depthwise()) return vectors_of(shape.in_channels) * LANES * shape.taps();
  return shape.groups * shape.taps() * shape.in() * vectors_of(shape.out()) * LANES;
}

// Vectors of channels from `first` on whose sums are computed at once.
inline int64_t blocks_from(int64_t first, int64_t vectors) {
  return std::min<int64_t>(MOST_BLOCKS, vectors - first);
}

// Packs weights (channels out, channels in of a group, rows, columns): for each group and block of
// channels out, the window, the channels in, and the block side by side; windows of single channels
// for each vector of them.
inline void pack(const Shape& shape, const float* weight, float* to) {
  if (shape.is_depthwise()) {
    for (int64_t channel = 0; channel < shape.in_channels; channel += LANES)
      for (int64_t tap = 0; tap < shape.taps(); tap++)
        for (int64_t lane = channel; lane < channel + LANES; lane++)
          *to++ = lane < shape.in_channels ? weight[lane * shape.taps() + tap] : 0.0f;
    return;
  }
  int64_t vectors = vectors_of(shape.out());
  for (int64_t group = 0; group < shape.groups; group++)
    for (int64_t first = 0; first < vectors; first += MOST_BLOCKS)
      for (int64_t tap = 0; tap < shape.taps(); tap++)
        for (int64_t in = 0; in < shape.in(); in++)
          for (int64_t lane = 0; lane < blocks_from(first, vectors) * LANES; lane++) {
            int64_t out = first * LANES + lane, row = group * shape.out() + out;
            *to++ = out < shape.out() ? weight[(row * shape.in() + in) * shape.taps() + tap] : 0.0f;
          }
}

// The result of a tile of up to `pixels` pixels by up to `count` channels, whose places are in `from` for each
// element of the window; rows of `to` and `other` are `pitch` apart. What no register holds is in a function of
// its own, as calls here would take the registers.
template <int BLOCKS, bool IS_WHOLE>
[[gnu::noinline]] void tile(const float* const* from, int64_t taps, int64_t in, const float* by, int64_t count,
                            int64_t pixels, float* to, int64_t pitch, const Finish& finish) {
  auto lanes_of = [&](int block) -> int64_t { return IS_WHOLE ? LANES : count - block * LANES; };
  Lanes sums[PIXELS * BLOCKS];
#pragma GCC unroll 3
  for (int b = 0; b < BLOCKS; b++) {
    Lanes bias = finish.bias ? load_some(finish.bias + b * LANES, lanes_of(b)) : Lanes{};
#pragma GCC unroll 8
    for (int i = 0; i < PIXELS; i++) sums[i * BLOCKS + b] = bias;
  }
#pragma GCC unroll 8
  for (int i = 0; i < PIXELS; i++)
#pragma GCC unroll 3
    for (int b = 0; b < BLOCKS; b++) __builtin_prefetch(to + i * pitch + b * LANES, 1);
  for (int64_t tap = 0; tap < taps; tap++, from += PIXELS) {
    const float* at[PIXELS];
#pragma GCC unroll 8
    for (int i = 0; i < PIXELS; i++) at[i] = from[i];
    for (int64_t k = 0; k < in; k++, by += BLOCKS * LANES) {
      Lanes weights[BLOCKS];
#pragma GCC unroll 3
      for (int b = 0; b < BLOCKS; b++) weights[b] = load(by + b * LANES);
#pragma GCC unroll 8
      for (int i = 0; i < PIXELS; i++) {
        Lanes value = all(at[i][k]);
#pragma GCC unroll 3
        for (int b = 0; b < BLOCKS; b++) sums[i * BLOCKS + b] += value * weights[b];
      }
    }
  }
  if (finish.other) {
    const float* other = finish.other;
#pragma GCC unroll 8
    for (int i = 0; i < PIXELS; i++, other += pitch)
      if (IS_WHOLE || i < pixels)
#pragma GCC unroll 3
        for (int b = 0; b < BLOCKS; b++) sums[i * BLOCKS + b] += load_some(other + b * LANES, lanes_of(b));
  }
  finish.activate(sums, [&](int number, Lanes value) {
    int i = number / BLOCKS, b = number % BLOCKS;
    if (IS_WHOLE || i < pixels) store_some(to + i * pitch + b * LANES, value, lanes_of(b));
  });
}

// Where the window of each of some pixels lies: for each of its rows, or elements, a place a pixel.
class Places {
 public:
  // Rows of a window are read as a whole where all channels are of one group: they lie side by side.
  explicit Places(const Shape& shape, const float* x)
      : shape(shape), x(x), 
        is_whole(shape.groups == 1 && shape.dilation[1] == 1 &&
                 (shape.columns == 1 || shape.in_step() == shape.in_channels)),
        taps(is_whole ? shape.rows : shape.taps()), in(is_whole ? shape.columns * shape.in() : shape.in()),
        zeros(is_whole ? in : shape.in_channels), found(taps * PIXELS), shifted(taps * PIXELS),
        lines(is_whole && shape.padding[1] ? taps * PIXELS * in : 0) {}

  const Shape& shape;
  const float* x;
  const bool is_whole;
  const int64_t taps, in;  // as the sums are taken

  // Finds the windows of `pixels` pixels from `first` on.
  void find(int64_t first, int64_t pixels) {
    if (shape.is_rows()) {
      for (int64_t i = 0; i < PIXELS; i++) found[i] = x + (first + std::min(i, pixels - 1)) * shape.in_step();
      return;
    }
    int64_t column = first % shape.out_width, line = first / shape.out_width;
    at_line(line);
    int64_t left = column * shape.stride[1] - shape.padding[1], step = shape.stride[1] * shape.in_step();
    int64_t last = left + (PIXELS - 1) * shape.stride[1] + (shape.columns - 1) * shape.dilation[1];
    bool is_inside = pixels == PIXELS && column + PIXELS <= shape.out_width && left >= 0 && last < shape.width &&
                     top >= 0 && top + (shape.rows - 1) * shape.dilation[0] < shape.height;
    if (is_inside) {
      const float** to = found.data();
      for (int64_t r = 0; r < shape.rows; r++)
        for (int64_t k = 0; k < (is_whole ? 1 : shape.columns); k++, to += PIXELS) {
          int64_t row = top + r * shape.dilation[0], place = left + k * shape.dilation[1];
          const float* start = image + (row * shape.width + place) * shape.in_step();
#pragma GCC unroll 8
          for (int64_t i = 0; i < PIXELS; i++) to[i] = start + i * step;
        }
      return;
    }
    for (int64_t i = 0; i < PIXELS; i++) {
      if (i < pixels) at(i, column);
      else for (int64_t tap = 0; tap < taps; tap++) found[tap * PIXELS + i] = found[tap * PIXELS];
      if (++column == shape.out_width) {
        column = 0;
        if (i + 1 < pixels) at_line(++line);
      }
    }
  }

  const float* const* of_group(int64_t group) {
    if (!group) return found.data();
    for (size_t i = 0; i < found.size(); i++)
      shifted[i] = found[i] == zeros.data() ? found[i] : found[i] + group * shape.in();
    return shifted.data();
  }

 private:
  void at_line(int64_t line) {
    top = line % shape.out_height * shape.stride[0] - shape.padding[0];
    image = x + line / shape.out_height * shape.height * shape.width * shape.in_step();
  }

  void at(int64_t i, int64_t column) {
    int64_t left = column * shape.stride[1] - shape.padding[1], channels = shape.in_channels, step = shape.in_step();
    for (int64_t r = 0; r < shape.rows; r++) {
      int64_t row = top + r * shape.dilation[0];
      bool is_in = row >= 0 && row < shape.height;
      const float* start = image + (row * shape.width + left) * step;
      if (is_whole) {
        int64_t begin = std::max<int64_t>(0, -left), end = std::min(shape.columns, shape.width - left);
        const float*& place = found[r * PIXELS + i];
        if (!is_in || begin >= end) place = zeros.data();
        else if (begin == 0 && end == shape.columns) place = start;
        else {
          float* own = lines.data() + (r * PIXELS + i) * in;
          std::fill(own, own + in, 0.0f);
          std::memcpy(own + begin * channels, start + begin * channels, (end - begin) * channels * sizeof(float));
          place = own;
        }
        continue;
      }
      for (int64_t k = 0; k < shape.columns; k++) {
        int64_t offset = k * shape.dilation[1];
        bool is_pixel = is_in && left + offset >= 0 && left + offset < shape.width;
        found[(r * shape.columns + k) * PIXELS + i] = is_pixel ? start + offset * step : zeros.data();
      }
    }
  }

  const std::vector<float> zeros;
  std::vector<const float*> found, shifted;
  std::vector<float> lines;
  int64_t top = 0;
  const float* image = nullptr;
};

inline void convolve_windows(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish) {
  int64_t num_pixels = shape.num_pixels(), vectors = vectors_of(shape.out());
  int64_t num_tiles = (num_pixels + PIXELS - 1) / PIXELS;
  int64_t work = shape.taps() * shape.in() * shape.out_channels * PIXELS;
  at::parallel_for(0, num_tiles, std::max<int64_t>(1, 262144 / work), [&](int64_t begin, int64_t end) {
    Places places(shape, x);
    for (int64_t number = begin; number < end; number++) {
      int64_t first_pixel = number * PIXELS, pixels = std::min<int64_t>(PIXELS, num_pixels - first_pixel);
      places.find(first_pixel, pixels);
      const float* weights = by;
      for (int64_t group = 0; group < shape.groups; group++) {
        const float* const* from = places.of_group(group);
        for (int64_t first = 0; first < vectors; first += MOST_BLOCKS) {
          int64_t blocks = blocks_from(first, vectors), count = shape.out() - first * LANES;
          int64_t channel = group * shape.out() + first * LANES, place = first_pixel * shape.out_channels + channel;
          Finish own = finish;
          if (own.bias) own.bias += channel;
          if (own.other) own.other += place;
          auto compute = [&]<int BLOCKS>(std::integral_constant<int, BLOCKS>) {
            auto run = pixels == PIXELS && count >= BLOCKS * LANES ? tile<BLOCKS, true> : tile<BLOCKS, false>;
            run(from, places.taps, places.in, weights, count, pixels, y + place, shape.out_channels, own);
          };
          if (blocks == 3) compute(std::integral_constant<int, 3>());
          else if (blocks == 2) compute(std::integral_constant<int, 2>());
          else compute(std::integral_constant<int, 1>());
          weights += places.taps * places.in * blocks * LANES;
        }
      }
    }
  });
}

constexpr int COLUMNS = 4;  // pixels of a line whose sums by one vector of channels are computed at once

// Some lines of pixels: of a few of a line, all channels one vector after the other, as they lie in memory.
template <int SIZE, int STRIDE>
void depthwise_lines(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish, int64_t begin,
                     int64_t end, const float* zeros) {
  constexpr int SPAN = (COLUMNS - 1) * STRIDE + SIZE;
  int64_t channels = shape.in_channels, width = shape.out_width;
  for (int64_t number = begin; number < end; number++) {
    const float* image = x + number / shape.out_height * shape.height * shape.width * shape.in_step();
    int64_t top = number % shape.out_height * STRIDE - shape.padding[0];
    for (int64_t column = 0; column < width; column += COLUMNS) {
      int64_t left = column * STRIDE - shape.padding[1], count = std::min<int64_t>(COLUMNS, width - column);
      int64_t place = (number * width + column) * channels;
      const float* from[SIZE][SPAN];
#pragma GCC unroll 7
      for (int r = 0; r < SIZE; r++)
#pragma GCC unroll 16
        for (int j = 0; j < SPAN; j++) {
          bool is_line = top + r >= 0 && top + r < shape.height, is_pixel = left + j >= 0 && left + j < shape.width;
          const float* pixel = image + ((top + r) * shape.width + left + j) * shape.in_step();
          from[r][j] = is_line && is_pixel ? pixel : zeros;
        }
      auto take = [&](int64_t channel, int64_t lanes) __attribute__((always_inline)) {
        const float* weights = by + channel * SIZE * SIZE;
        Lanes bias = finish.bias ? load_some(finish.bias + channel, lanes) : Lanes{};
        Lanes sums[COLUMNS] = {bias, bias, bias, bias};
#pragma GCC unroll 7
        for (int r = 0; r < SIZE; r++) {
          Lanes own[SIZE];
#pragma GCC unroll 7
          for (int k = 0; k < SIZE; k++) own[k] = in_register(load(weights + (r * SIZE + k) * LANES));
#pragma GCC unroll 16
          for (int j = 0; j < SPAN; j++) {
            Lanes value = in_register(load_some(from[r][j] + channel, lanes));
#pragma GCC unroll 4
            for (int i = 0; i < COLUMNS; i++)
              if (int k = j - i * STRIDE; k >= 0 && k < SIZE) sums[i] += value * own[k];
          }
        }
        finish.put(sums, y, place + channel, channels, count, lanes);
      };
      int64_t channel = 0;
      for (; channel + LANES <= channels; channel += LANES) take(channel, LANES);
      if (channel < channels) take(channel, channels - channel);
    }
  }
}

constexpr int64_t IN_CACHE = 1 << 19;  // bytes of lines that each vector of channels reads, until the next lines

// Windows of any size: a vector of channels of some lines of pixels.
template <bool IS_PART>
void depthwise_lines_of_any(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish,
                            int64_t channel, int64_t begin, int64_t end, const float* zeros) {
  int64_t channels = shape.in_channels, width = shape.out_width, span = (shape.columns - 1) * shape.dilation[1];
  const int64_t lanes = IS_PART ? channels - channel : LANES, stride = shape.stride[1], step = stride * shape.in_step();
  Lanes bias = finish.bias ? load_some(finish.bias + channel, lanes) : Lanes{};
  for (int64_t number = begin; number < end; number++) {
    const float* image = x + number / shape.out_height * shape.height * shape.width * shape.in_step() + channel;
    int64_t top = number % shape.out_height * shape.stride[0] - shape.padding[0];
    for (int64_t column = 0; column < width; column += COLUMNS) {
      Lanes sums[COLUMNS] = {bias, bias, bias, bias};
      int64_t first = column * stride - shape.padding[1], count = std::min<int64_t>(COLUMNS, width - column);
      bool is_inside = first >= 0 && first + (COLUMNS - 1) * stride + span < shape.width;
      for (int64_t r = 0; r < shape.rows; r++) {
        int64_t row = top + r * shape.dilation[0];
        if (row < 0 || row >= shape.height) continue;
        const float* line = image + row * shape.width * shape.in_step();
        for (int64_t k = 0; k < shape.columns; k++) {
          int64_t place = first + k * shape.dilation[1];
          Lanes weight = load(by + (r * shape.columns + k) * LANES);
          const float* from = line + place * shape.in_step();
#pragma GCC unroll 4
          for (int i = 0; i < COLUMNS; i++, place += stride, from += step)
            sums[i] += load_some(is_inside || (place >= 0 && place < shape.width) ? from : zeros, lanes) * weight;
        }
      }
      finish.put(sums, y, (number * width + column) * channels + channel, channels, count, lanes);
    }
  }
}

// A convolution of each channel by its own window.
inline void depthwise(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish) {
  int64_t channels = shape.in_channels;
  const std::vector<float> zeros(shape.width * channels);
  int64_t work = shape.out_width * channels * shape.taps();
  at::parallel_for(0, shape.images * shape.out_height, std::max<int64_t>(1, 65536 / work),
                   [&](int64_t begin, int64_t end) {
    auto of_size = [&]<int SIZE>(std::integral_constant<int, SIZE>) {
      if (shape.stride[0] == 1) depthwise_lines<SIZE, 1>(shape, x, by, y, finish, begin, end, zeros.data());
      else depthwise_lines<SIZE, 2>(shape, x, by, y, finish, begin, end, zeros.data());
    };
    auto of_any = [&] {
      int64_t line = shape.width * channels * shape.stride[0] * sizeof(float), count = std::max<int64_t>(1, IN_CACHE / line);
      for (int64_t first = begin; first < end; first += count)
        for (int64_t channel = 0; channel < channels; channel += LANES) {
          auto run = channel + LANES <= channels ? depthwise_lines_of_any<false> : depthwise_lines_of_any<true>;
          int64_t last = std::min(end, first + count);
          run(shape, x, by + channel * shape.taps(), y, finish, channel, first, last, zeros.data());
        }
    };
    bool is_square = shape.rows == shape.columns && shape.stride[0] == shape.stride[1];
    bool is_usual = is_square && shape.stride[0] <= 2 && shape.dilation[0] == 1 && shape.dilation[1] == 1;
    if (is_usual && shape.rows == 3) of_size(std::integral_constant<int, 3>());
    else if (is_usual && shape.rows == 5) of_size(std::integral_constant<int, 5>());
    else if (is_usual && shape.rows == 7) of_size(std::integral_constant<int, 7>());
    else of_any();
  });
}

// A convolution, or a product of rows, by weights of `pack`.
inline void convolve(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish) {
  if (shape.is_depthwise()) return depthwise(shape, x, by, y, finish);
  convolve_windows(shape, x, by, y, finish);
}

}  // namespace passnet::direct
