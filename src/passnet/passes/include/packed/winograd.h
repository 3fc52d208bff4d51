// Convolutions by windows of 3 x 3 with fewer products: Winograd's minimal filtering, F(4 x 4, 3 x 3).
//
// Tiles of 6 x 6 pixels and the windows are evaluated at 36 points, and multiplied there; 4 x 4 pixels are interpolated
// from the sums over channels. That is 36 products instead of 144 for each pair of channels. Small images take tiles of
// 2 x 2 pixels, with 16 products instead of 36 and half the weights to read. The frames of a window are channels.
//
// What is not finite, or overflows at a point, spoils a whole tile: such a result has to be computed in another way.
//
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (arXiv 1509.09308); the transforms of a line are
// those of Toom and Cook.
#pragma once

#include <atomic>
#include <memory>

#include "streamed_rows.h"

namespace passnet::direct::winograd {

// The transforms of a line of TILE pixels and the 2 after it. Points are 0, pairs of numbers and their negatives, and
// infinity.
template <int TILE>
struct Line;

template <>
struct Line<2> {
  static constexpr double POINTS[] = {0, 1, -1};

  // A line of pixels by the coefficients of the product of (x - p) over all points but one.
  static void evaluate(const Lanes* d, Lanes* to, int step) {
    to[0] = d[2] - d[0];
    to[step] = d[2] + d[1], to[2 * step] = d[2] - d[1];
    to[3 * step] = d[3] - d[1];
  }

  // The pixels of a line from what was found at the points.
  static void interpolate(const Lanes* m, Lanes* to, int step) {
    to[0] = m[0] + m[1] + m[2];
    to[step] = m[1] - m[2] + m[3];
  }
};

template <>
struct Line<4> {
  // Of twelve pairs these round least, by twice as much as plain sums; 1 and 2, as in the paper, by four times.
  static constexpr float NEAR = 0.625f, FAR = 1.5f, NEAR_2 = NEAR * NEAR, FAR_2 = FAR * FAR;
  static constexpr double POINTS[] = {0, NEAR, -NEAR, FAR, -FAR};

  static void evaluate(const Lanes* d, Lanes* to, int step) {
    to[0] = d[4] - all(NEAR_2 + FAR_2) * d[2] + all(NEAR_2 * FAR_2) * d[0];
    Lanes even = d[4] - all(FAR_2) * d[2], odd = all(NEAR) * (d[3] - all(FAR_2) * d[1]);
    to[step] = even + odd, to[2 * step] = even - odd;
    even = d[4] - all(NEAR_2) * d[2], odd = all(FAR) * (d[3] - all(NEAR_2) * d[1]);
    to[3 * step] = even + odd, to[4 * step] = even - odd;
    to[5 * step] = d[5] - all(NEAR_2 + FAR_2) * d[3] + all(NEAR_2 * FAR_2) * d[1];
  }

  static void interpolate(const Lanes* m, Lanes* to, int step) {
    Lanes even_near = m[1] + m[2], odd_near = m[1] - m[2], even_far = m[3] + m[4], odd_far = m[3] - m[4];
    to[0] = m[0] + even_near + even_far;
    to[step] = all(NEAR) * odd_near + all(FAR) * odd_far;
    to[2 * step] = all(NEAR_2) * even_near + all(FAR_2) * even_far;
    to[3 * step] = all(NEAR_2 * NEAR) * odd_near + all(FAR_2 * FAR) * odd_far + m[5];
  }
};

constexpr int64_t LEAST_CHANNELS = 8, LEAST_TILES = 8;  // with fewer, other ways are faster
constexpr int64_t IN_CACHE = 512 << 10;                 // bytes of the tiles that are computed at once, at all points

// The tiles of all images, by number.
template <int TILE>
class Tiles {
 public:
  static constexpr int SIDE = TILE + 2, POINTS = SIDE * SIDE;

  explicit Tiles(const Shape& shape)
      : shape(shape), width((shape.out_width + TILE - 1) / TILE), height((shape.out_height + TILE - 1) / TILE),
        in(shape.depth * shape.in()), out(shape.out()), vectors(vectors_of(out)), zeros(shape.in_channels) {}

  const Shape& shape;
  const int64_t width, height, in, out, vectors;

  int64_t count() const { return shape.images * height * width; }
  int64_t packed_size() const { return POINTS * shape.groups * in * vectors * LANES; }

  // Packs weights (channels out, channels in of a group, frames, 3, 3): for each group and panel of channels out the
  // points, for each of them the channels in, and the panel side by side.
  void pack(const float* weight, float* to) const {
    for (int64_t group = 0; group < shape.groups; group++)
      for (int64_t first = 0; first < vectors; first += MOST_BLOCKS) {
        const int64_t pitch = blocks_from(first, vectors) * LANES;
        for (int64_t channel = 0; channel < in; channel++)
          for (int64_t lane = 0; lane < pitch; lane++) {
            double window[9] = {}, lines[3 * SIDE], found[POINTS];
            if (int64_t number = first * LANES + lane; number < out) {
              int64_t row = (group * out + number) * shape.in() + channel % shape.in();
              const float* own = weight + (row * shape.depth + channel / shape.in()) * 9;
              std::copy(own, own + 9, window);
            }
            for (int row = 0; row < 3; row++) weights_at_points(window + 3 * row, 1, lines + row * SIDE, 1);
            for (int i = 0; i < SIDE; i++) weights_at_points(lines + i, SIDE, found + i, SIDE);
            for (int p = 0; p < POINTS; p++) to[(p * in + channel) * pitch + lane] = static_cast<float>(found[p]);
          }
        to += POINTS * in * pitch;
      }
  }

  // Returns whether all sums are finite.
  bool convolve(const float* x, const float* by, float* y, const Finish& finish) const {
    std::atomic<bool> is_finite = true;
    int64_t most = IN_CACHE / (POINTS * in * static_cast<int64_t>(sizeof(float))) / PIXELS * PIXELS;
    most = std::clamp<int64_t>(most, PIXELS, MOST_ROWS);
    const int64_t num_blocks = (count() + most - 1) / most;
    most = (count() + num_blocks - 1) / num_blocks;
    at::parallel_for(0, num_blocks, 1, [&](int64_t begin, int64_t end) {
      const int64_t step = most * in + LANES;  // lines of all points would be of one set of the cache otherwise
      auto at_points = std::make_unique_for_overwrite<float[]>(POINTS * step);
      auto sums = std::make_unique_for_overwrite<float[]>(POINTS * (most * MOST_BLOCKS + 1) * LANES);
      for (int64_t block = begin; block < end; block++) {
        const int64_t start = block * most, rows = std::min(most, count() - start);
        const float* own = by;
        for (int64_t group = 0; group < shape.groups; group++) {
          evaluate(x + group * shape.in(), start, rows, at_points.get(), step);
          for (int64_t first = 0; first < vectors; first += MOST_BLOCKS) {
            const int64_t blocks = blocks_from(first, vectors), pitch = blocks * LANES, apart = rows * pitch + LANES;
            std::fill(sums.get(), sums.get() + POINTS * apart, 0.0f);
            for (int p = 0; p < POINTS; p++, own += in * pitch) {
              const float* from = at_points.get() + p * step;
              float* to = sums.get() + p * apart;
              if (blocks == 3) add_panel<3>(from, in, rows, in, own, to);
              else if (blocks == 2) add_panel<2>(from, in, rows, in, own, to);
              else add_panel<1>(from, in, rows, in, own, to);
            }
            for (int64_t b = 0; b < blocks; b++)
              if (!interpolate(sums.get() + b * LANES, apart, pitch, start, rows, group, (first + b) * LANES, y,
                                     finish))
                is_finite = false;
          }
        }
      }
    });
    return is_finite;
  }

 private:
  struct Place {
    int64_t image, top, left;
  };

  const std::vector<float> zeros;

  Place place_of(int64_t tile) const {
    return {tile / width / height, tile / width % height * TILE, tile % width * TILE};
  }

  // A line of a window at the points, divided by the product of the distances from the others.
  static void weights_at_points(const double* line, int64_t step, double* to, int64_t to_step) {
    const auto& points = Line<TILE>::POINTS;
    for (int i = 0; i < SIDE - 1; i++) {
      double others = 1, p = points[i];
      for (int j = 0; j < SIDE - 1; j++) others *= i == j ? 1 : p - points[j];
      to[i * to_step] = (line[0] + p * (line[step] + p * line[2 * step])) / others;
    }
    to[(SIDE - 1) * to_step] = line[2 * step];
  }

  // Evaluates tiles from `first` on at the points, whose numbers are `step` apart; `x` begins with a group's channels.
  void evaluate(const float* x, int64_t first, int64_t rows, float* to, int64_t step) const {
    for (int64_t tile = first; tile < first + rows; tile++) {
      auto [image, top, left] = place_of(tile);
      top -= shape.padding[0], left -= shape.padding[1];
      for (int64_t t = 0; t < shape.depth; t++, to += shape.in()) {
        const int64_t frame = image % shape.out_frames * shape.frame_stride - shape.frame_padding + t;
        const int64_t number = image / shape.out_frames * shape.frames + frame;
        const float* own = x + number * shape.height * shape.width * shape.in_step();
        evaluate_tile(frame >= 0 && frame < shape.frames ? own : nullptr, top, left, to, step);
      }
    }
  }

  void evaluate_tile(const float* frame, int64_t top, int64_t left, float* to, int64_t step) const {
    const float* from[POINTS];
    for (int r = 0; r < SIDE; r++)
      for (int k = 0; k < SIDE; k++) {
        int64_t row = top + r, column = left + k;
        bool is_in = frame && row >= 0 && row < shape.height && column >= 0 && column < shape.width;
        from[r * SIDE + k] = is_in ? frame + (row * shape.width + column) * shape.in_step() : zeros.data();
      }
    auto take = [&](int64_t channel, int64_t lanes) {
      Lanes lines[POINTS];
#pragma GCC unroll 6
      for (int k = 0; k < SIDE; k++) {
        Lanes line[SIDE];
#pragma GCC unroll 6
        for (int r = 0; r < SIDE; r++) line[r] = load_some(from[r * SIDE + k] + channel, lanes);
        Line<TILE>::evaluate(line, lines + k, SIDE);
      }
#pragma GCC unroll 6
      for (int r = 0; r < SIDE; r++) {
        Lanes found[SIDE];
        Line<TILE>::evaluate(lines + r * SIDE, found, 1);
#pragma GCC unroll 6
        for (int k = 0; k < SIDE; k++) store_some(to + (r * SIDE + k) * step + channel, found[k], lanes);
      }
    };
    int64_t channel = 0, channels = shape.in();
    for (; channel + LANES <= channels; channel += LANES) take(channel, LANES);
    if (channel < channels) take(channel, channels - channel);
  }

  // Writes a vector of channels of the pixels of tiles, and returns whether they were finite before the activation; the
  // sums of points are `step` apart, those of tiles `pitch`.
  bool interpolate(const float* sums, int64_t step, int64_t pitch, int64_t first, int64_t rows, int64_t group,
                   int64_t number, float* y, const Finish& finish) const {
    Lanes zero{};
    const int64_t lanes = std::min<int64_t>(LANES, out - number), channel = group * out + number;
    const Lanes bias = finish.bias ? load_some(finish.bias + channel, lanes) : Lanes{};
    for (int64_t tile = first; tile < first + rows; tile++, sums += pitch) {
      Lanes lines[TILE * SIDE];
#pragma GCC unroll 6
      for (int k = 0; k < SIDE; k++) {
        Lanes line[SIDE];
#pragma GCC unroll 6
        for (int r = 0; r < SIDE; r++) line[r] = load(sums + (r * SIDE + k) * step);
        Line<TILE>::interpolate(line, lines + k, SIDE);
      }
      auto [image, top, left] = place_of(tile);
      const int64_t lines_in = std::min<int64_t>(TILE, shape.out_height - top);
      const int64_t columns = std::min<int64_t>(TILE, shape.out_width - left);
      for (int64_t r = 0; r < lines_in; r++) {
        Lanes found[TILE];
        Line<TILE>::interpolate(lines + r * SIDE, found, 1);
        int64_t place = ((image * shape.out_height + top + r) * shape.out_width + left) * shape.out_channels + channel;
#pragma GCC unroll 4
        for (int k = 0; k < TILE; k++) {
          zero += found[k] - found[k];
          found[k] += bias;
        }
        finish.put(found, y, place, shape.out_channels, columns, lanes);
      }
    }
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += zero[lane];
    return sum == 0;
  }
};

// The largest magnitude and the sum of all.
struct Magnitudes {
  float most = 0, sum = 0;
};

inline Magnitudes magnitudes_of(const float* x, int64_t pixels, int64_t channels, int64_t step) {
  Lanes most{}, sum{};
  auto take = [&](Lanes value) {
    value = value < Lanes{} ? -value : value;
    most = value > most ? value : most;
    sum += value;
  };
  if (step == channels) channels *= pixels, pixels = 1;
  for (int64_t pixel = 0; pixel < pixels; pixel++, x += step) {
    int64_t i = 0;
    for (; i + LANES <= channels; i += LANES) take(load(x + i));
    if (i < channels) take(load_some(x + i, channels - i));
  }
  Magnitudes found;
  for (int lane = 0; lane < LANES; lane++) {
    found.most = std::max(found.most, most[lane]);
    found.sum += sum[lane];
  }
  return found;
}

// A number so much larger than the mean is rounded into pixels of its tile that do not see it, by 1e-7 of its magnitude.
constexpr float LARGE = 1000;

inline bool has_outliers(const Shape& shape, const float* x) {
  const int64_t pixels = shape.images / shape.out_frames * shape.frames * shape.height * shape.width;
  const int64_t channels = shape.in_channels, step = shape.in_step();
  auto join = [](Magnitudes a, Magnitudes b) { return Magnitudes{std::max(a.most, b.most), a.sum + b.sum}; };
  auto some = [&](int64_t begin, int64_t end, Magnitudes own) {
    return join(own, magnitudes_of(x + begin * step, end - begin, channels, step));
  };
  Magnitudes all = at::parallel_reduce(0, pixels, std::max<int64_t>(1, (1 << 16) / channels), Magnitudes(), some, join);
  return all.most * static_cast<float>(pixels * channels) > LARGE * all.sum;
}

// Whether it is of windows of 3 x 3 that are next to each other, and of enough tiles.
template <int TILE>
bool takes(const Shape& shape) {
  auto all = [](const int64_t (&values)[2], int64_t value) { return values[0] == value && values[1] == value; };
  return shape.rows == 3 && shape.columns == 3 && all(shape.stride, 1) && all(shape.dilation, 1) &&
         shape.in() >= LEAST_CHANNELS && Tiles<TILE>(shape).count() >= LEAST_TILES;
}

}  // namespace passnet::direct::winograd
