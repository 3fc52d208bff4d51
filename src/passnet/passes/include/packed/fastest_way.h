// The choice among the ways of a product or convolution, by measuring.
#pragma once

#include <chrono>
#include <functional>

#include "ways.h"

namespace passnet::packed {

// Leaves weights in no near cache, as the rest of a net does between two calls, and `x` in the nearest.
inline void forget_all_but(const Tensor& x) {
  static const std::vector<float> others(1 << 20, 1.0f);  // 4 MiB
  auto touch = [](const float* from, int64_t count) {
    float sum = 0;
    for (int64_t i = 0; i < count; i += 16) sum += from[i];
    static volatile float kept;
    kept = sum;
  };
  touch(others.data(), static_cast<int64_t>(others.size()));
  if (x.is_non_overlapping_and_dense()) touch(x.const_data_ptr<float>(), x.numel());
}

inline double seconds_of(const std::function<void()>& call) {
  auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr int TURNS = 9;
constexpr double SECONDS = 0.02;  // for the turns of a way
constexpr int64_t MOST_DIRECT = 1 << 20;  // weights, of more of which MKL and oneDNN are faster
constexpr int64_t MOST_STREAMED = 256;  // rows, with more of which they are

// The ways that may be fastest.
inline std::vector<Way> candidates(const Form& form, const Tensor& weight, const Tensor& x) {
  std::vector<Way> ways{form.is_misread(weight) ? Way::TORCH : Way::ONEDNN};
  bool has_activation = form.activation != "none";
  bool is_alone = weight.numel() == weight.size(0) * weight.size(1);  // a window of 1
  if (form.num_dims != 3 && weight.numel() <= MOST_DIRECT) ways.push_back(Way::DIRECT);
  if (!form.num_dims || (form.is_pointwise() && is_alone)) {
    if (Mkl::of_torch()) ways.insert(ways.end(), {Way::MKL, Way::MKL_ROWS});
    if (rows_of(form, x) <= MOST_STREAMED) ways.push_back(Way::STREAMED);
  }
  if (form.num_dims) {
    direct::Shape shape = shape_of(form, x, weight);
    bool has_windows = form.num_dims == 2 && shape.groups == 1 && shape.taps() > 1;
    if (has_windows && shape.num_pixels() <= MOST_STREAMED) ways.push_back(Way::GATHERED);
    bool is_of_frames = form.num_dims == 3 && form.dilation[0] > 1;
    if (!is_of_frames && direct::winograd::takes<4>(shape)) ways.push_back(Way::WINOGRAD_4);
    if (!is_of_frames && direct::winograd::takes<2>(shape)) ways.push_back(Way::WINOGRAD_2);
  }
  if (form.is_of_patches(weight) && Mkl::of_torch()) ways.push_back(Way::MKL_PATCHES);
  if (!form.num_dims) ways.push_back(Way::TORCH);
  if (has_activation && !form.num_dims) ways.push_back(Way::ONEDNN_APART);
  return ways;
}

// The packed weights of the way with the least of several times, taken in turns.
inline Packed fastest(const Form& form, at::TensorList weights, const Tensor& x, const Optional& other) {
  if (form.way >= 0) return packed_by(static_cast<Way>(form.way), form, weights, x);
  const std::vector<Way> ways = candidates(form, weights[0], x);
  if (ways.size() == 1) return packed_by(ways[0], form, weights, x);
  Chunks memory(32 << 20);  // whose other parts would be kept with the weights of the fastest way
  std::vector<Packed> all;
  for (Way way : ways) {
    auto is_same = [&](const Packed& other) { return is_in_own_layout(other.way) && is_in_own_layout(way); };
    auto same = std::find_if(all.begin(), all.end(), is_same);
    all.push_back(same == all.end() ? packed_by(way, form, weights, x, memory) : Packed{way, same->weight, same->bias});
  }
  std::vector<double> least(all.size(), 1e9);
  double sum = 0;
  for (int turn = -1; turn < TURNS && sum < all.size() * SECONDS; turn++)  // the first one settles things
    for (size_t way = 0; way < all.size(); way++) {
      if (!form.is_warm) forget_all_but(x);
      double seconds = seconds_of([&] { product(all[way], form, x, other, weights); });
      if (turn < 0) continue;
      least[way] = std::min(least[way], seconds);
      sum += seconds;
    }
  return packed_by(ways[std::min_element(least.begin(), least.end()) - least.begin()], form, weights, x);
}

}  // namespace passnet::packed
