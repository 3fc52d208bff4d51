// Convolutions by windows of 3 x 3 with fewer products: Winograd's minimal filtering, F(4 x 4, 3 x 3).
//
// Tiles of 6 x 6 pixels and the windows are evaluated at 36 points, and multiplied there; 4 x 4 pixels are interpolated
// from the sums over channels. That is 36 products instead of 144 for each pair of channels. Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks" (arXiv 1509.09308); the transforms of a line are those of Toom and Cook.
#pragma once

#include "streamed_rows.h"

namespace passnet::direct::winograd {

constexpr int TILE = 4, SIDE = TILE + 2, POINTS = SIDE * SIDE;

// The points of a line are 0, these, their negatives, and infinity. Of twelve such pairs they round least, by twice as
// much as the plain sums; 1 and 2, as in the paper, by four times.
constexpr double NEAR = 0.625, FAR = 1.5;

constexpr int64_t LEAST_CHANNELS = 8, LEAST_TILES = 8;  // with fewer, other ways are faster

// A line of a window at the points, divided by the product of the distances from the others.
inline void weights_at_points(const double* line, int64_t step, double* to, int64_t to_step) {
  constexpr double points[] = {0, NEAR, -NEAR, FAR, -FAR};
  for (int i = 0; i < SIDE - 1; i++) {
    double others = 1, p = points[i];
    for (int j = 0; j < SIDE - 1; j++) others *= i == j ? 1 : p - points[j];
    to[i * to_step] = (line[0] + p * (line[step] + p * line[2 * step])) / others;
  }
  to[(SIDE - 1) * to_step] = line[2 * step];
}

// A line of pixels by the coefficients of the product of (x - p) over all points but one.
inline void pixels_at_points(const Lanes* d, int step, Lanes* to, int to_step) {
  constexpr float a = NEAR, b = FAR, aa = NEAR * NEAR, bb = FAR * FAR, sum = aa + bb, both = NEAR * NEAR * FAR * FAR;
  Lanes d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step];
  to[0] = d4 - all(sum) * d2 + all(both) * d[0];
  Lanes even = d4 - all(bb) * d2, odd = d3 - all(bb) * d1;
  to[to_step] = even + all(a) * odd, to[2 * to_step] = even - all(a) * odd;
  even = d4 - all(aa) * d2, odd = d3 - all(aa) * d1;
  to[3 * to_step] = even + all(b) * odd, to[4 * to_step] = even - all(b) * odd;
  to[5 * to_step] = d[5 * step] - all(sum) * d3 + all(both) * d1;
}

// The pixels of a line from what was found at the points.
inline void pixels_of_points(const Lanes* m, int step, Lanes* to, int to_step) {
  constexpr float a = NEAR, b = FAR, aa = NEAR * NEAR, bb = FAR * FAR, aaa = aa * a, bbb = bb * b;
  Lanes even_a = m[step] + m[2 * step], odd_a = m[step] - m[2 * step];
  Lanes even_b = m[3 * step] + m[4 * step], odd_b = m[3 * step] - m[4 * step];
  to[0] = m[0] + even_a + even_b;
  to[to_step] = all(a) * odd_a + all(b) * odd_b;
  to[2 * to_step] = all(aa) * even_a + all(bb) * even_b;
  to[3 * to_step] = all(aaa) * odd_a + all(bbb) * odd_b + m[5 * step];
}

inline int64_t lines_of_tiles(int64_t pixels) { return (pixels + TILE - 1) / TILE; }

inline int64_t num_tiles(const Shape& shape) {
  return shape.images * lines_of_tiles(shape.out_height) * lines_of_tiles(shape.out_width);
}

inline bool takes(const Shape& shape) {
  auto all = [](const int64_t (&values)[2], int64_t value) { return values[0] == value && values[1] == value; };
  return shape.rows == 3 && shape.columns == 3 && all(shape.stride, 1) && all(shape.dilation, 1) &&
         shape.in() >= LEAST_CHANNELS && num_tiles(shape) >= LEAST_TILES;
}

inline int64_t packed_size(const Shape& shape) {
  return POINTS * shape.in_channels * vectors_of(shape.out()) * LANES;
}

// Packs weights (channels out, channels in of a group, 3, 3): for each group and panel of channels out the points, for
// each of them the channels in, and the panel side by side.
inline void pack(const Shape& shape, const float* weight, float* to) {
  const int64_t in = shape.in(), out = shape.out(), vectors = vectors_of(out);
  for (int64_t group = 0; group < shape.groups; group++, weight += out * in * 9)
    for (int64_t first = 0; first < vectors; first += MOST_BLOCKS) {
      const int64_t pitch = blocks_from(first, vectors) * LANES;
      for (int64_t channel = 0; channel < in; channel++)
        for (int64_t lane = 0; lane < pitch; lane++) {
          double window[9] = {}, lines[3 * SIDE], found[POINTS];
          if (first * LANES + lane < out)
            for (int i = 0; i < 9; i++) window[i] = weight[((first * LANES + lane) * in + channel) * 9 + i];
          for (int row = 0; row < 3; row++) weights_at_points(window + 3 * row, 1, lines + row * SIDE, 1);
          for (int i = 0; i < SIDE; i++) weights_at_points(lines + i, SIDE, found + i, SIDE);
          for (int p = 0; p < POINTS; p++) to[(p * in + channel) * pitch + lane] = static_cast<float>(found[p]);
        }
      to += POINTS * in * pitch;
    }
}

// The tiles of all images, by number.
class Tiles {
 public:
  explicit Tiles(const Shape& shape) : shape(shape), zeros(shape.in_channels) {}

  // Evaluates tiles from `first` on at the points, whose numbers are `step` apart; `x` begins with a group's channels.
  void evaluate(const float* x, int64_t first, int64_t count, float* to, int64_t step) const {
    const int64_t channels = shape.in(), pitch = shape.in_channels;
    for (int64_t tile = 0; tile < count; tile++, to += channels) {
      const float* from[POINTS];
      auto [image, top, left] = place_of(first + tile);
      top -= shape.padding[0], left -= shape.padding[1];
      for (int r = 0; r < SIDE; r++)
        for (int k = 0; k < SIDE; k++) {
          int64_t row = top + r, column = left + k;
          bool is_in = row >= 0 && row < shape.height && column >= 0 && column < shape.width;
          from[r * SIDE + k] = is_in ? x + ((image * shape.height + row) * shape.width + column) * pitch : zeros.data();
        }
      auto take = [&](int64_t channel, int64_t lanes) {
        Lanes lines[POINTS];
#pragma GCC unroll 6
        for (int k = 0; k < SIDE; k++) {
          Lanes line[SIDE];
#pragma GCC unroll 6
          for (int r = 0; r < SIDE; r++) line[r] = load_some(from[r * SIDE + k] + channel, lanes);
          pixels_at_points(line, 1, lines + k, SIDE);
        }
#pragma GCC unroll 6
        for (int r = 0; r < SIDE; r++) {
          Lanes found[SIDE];
          pixels_at_points(lines + r * SIDE, 1, found, 1);
#pragma GCC unroll 6
          for (int k = 0; k < SIDE; k++) store_some(to + (r * SIDE + k) * step + channel, found[k], lanes);
        }
      };
      int64_t channel = 0;
      for (; channel + LANES <= channels; channel += LANES) take(channel, LANES);
      if (channel < channels) take(channel, channels - channel);
    }
  }

  // Writes some channels of the pixels of tiles; the sums of points are `step` apart, those of tiles `pitch`.
  template <Activation KIND>
  void interpolate(const float* sums, int64_t step, int64_t pitch, int64_t first, int64_t count, int64_t channel,
                   int64_t lanes, float* y, const Finish& finish) const {
    for (int64_t tile = 0; tile < count; tile++, sums += pitch) {
      Lanes lines[TILE * SIDE];
#pragma GCC unroll 6
      for (int k = 0; k < SIDE; k++) {
        Lanes line[SIDE];
#pragma GCC unroll 6
        for (int r = 0; r < SIDE; r++) line[r] = load(sums + (r * SIDE + k) * step);
        pixels_of_points(line, 1, lines + k, SIDE);
      }
      auto [image, top, left] = place_of(first + tile);
      const int64_t rows = std::min<int64_t>(TILE, shape.out_height - top);
      const int64_t columns = std::min<int64_t>(TILE, shape.out_width - left);
      for (int64_t r = 0; r < rows; r++) {
        Lanes found[TILE];
        pixels_of_points(lines + r * SIDE, 1, found, 1);
        int64_t place = ((image * shape.out_height + top + r) * shape.out_width + left) * shape.out_channels + channel;
#pragma GCC unroll 4
        for (int k = 0; k < TILE; k++, place += shape.out_channels)
          if (k < columns) finish.put<KIND>(found[k], y, place, channel, lanes);
      }
    }
  }

 private:
  struct Place {
    int64_t image, top, left;
  };

  Place place_of(int64_t tile) const {
    int64_t width = lines_of_tiles(shape.out_width), height = lines_of_tiles(shape.out_height);
    return {tile / width / height, tile / width % height * TILE, tile % width * TILE};
  }

  const Shape& shape;
  const std::vector<float> zeros;
};

constexpr int64_t IN_CACHE = 512 << 10;  // bytes of the tiles that are computed at once, at all points

template <Activation KIND>
void convolve(const Shape& shape, const float* x, const float* by, float* y, const Finish& finish) {
  const int64_t count = num_tiles(shape), in = shape.in(), out = shape.out(), vectors = vectors_of(out);
  int64_t most = IN_CACHE / (POINTS * in * static_cast<int64_t>(sizeof(float))) / PIXELS * PIXELS;
  most = std::clamp<int64_t>(most, PIXELS, MOST_ROWS);
  const int64_t num_blocks = (count + most - 1) / most;
  most = (count + num_blocks - 1) / num_blocks;
  at::parallel_for(0, num_blocks, 1, [&](int64_t begin, int64_t end) {
    const int64_t step = most * in + LANES;  // lines of all points would be of one set of the cache otherwise
    std::vector<float> at_points(POINTS * step), sums(POINTS * (most * MOST_BLOCKS + 1) * LANES);
    const Tiles tiles(shape);
    for (int64_t block = begin; block < end; block++) {
      const int64_t start = block * most, rows = std::min(most, count - start);
      const float* own = by;
      for (int64_t group = 0; group < shape.groups; group++) {
        tiles.evaluate(x + group * in, start, rows, at_points.data(), step);
        for (int64_t first = 0; first < vectors; first += MOST_BLOCKS) {
          const int64_t blocks = blocks_from(first, vectors), pitch = blocks * LANES, apart = rows * pitch + LANES;
          std::fill(sums.begin(), sums.begin() + POINTS * apart, 0.0f);
          for (int p = 0; p < POINTS; p++, own += in * pitch) {
            const float* from = at_points.data() + p * step;
            float* to = sums.data() + p * apart;
            if (blocks == 3) add_panel<3>(from, rows, in, own, to);
            else if (blocks == 2) add_panel<2>(from, rows, in, own, to);
            else add_panel<1>(from, rows, in, own, to);
          }
          for (int64_t b = 0; b < blocks; b++) {
            const int64_t channel = (first + b) * LANES, lanes = std::min<int64_t>(LANES, out - channel);
            tiles.interpolate<KIND>(sums.data() + b * LANES, apart, pitch, start, rows, group * out + channel, lanes, y,
                                    finish);
          }
        }
      }
    }
  });
}

}  // namespace passnet::direct::winograd
