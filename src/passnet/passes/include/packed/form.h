// What a call of packed weights computes, as packed_products.py writes it in words, and weights as a way wants them.
#pragma once

#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <ATen/core/List.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "direct_convolution.h"

namespace passnet::packed {

using at::Tensor;
using Optional = std::optional<Tensor>;

// What a call computes, as packed_products.py writes it in words.
struct Form {
  int64_t num_dims;  // of the window of a convolution; 0 for a product
  bool is_line;      // has one dimension, and is computed as an image one pixel high
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
  bool has_bias, has_norm;
  double epsilon;
  std::string activation, algorithm;
  int bits = 32;  // of weights; fewer for products alone
  int64_t norm_dim = -1;  // of a weight norm, whose directions and lengths are the first two weights
  int64_t way = -1;  // a number of `Way` to take; -1 for the fastest
  int64_t is_warm = 0;  // whether calls follow each other, so that weights lie in a near cache
  int64_t is_frozen = 0;  // whether weights are constants of a package, which nobody writes
  std::vector<double> numbers;

  explicit Form(const std::string& text) {
    std::istringstream words(text);
    words >> num_dims;
    for (auto* each : {&stride, &padding, &dilation}) {
      each->resize(num_dims);
      for (auto& number : *each) words >> number;
    }
    words >> groups >> has_bias >> has_norm >> epsilon >> activation >> algorithm >> bits;
    if (!words) throw std::runtime_error("passnet: no form of a product: " + text);
    for (double number; words >> number;) numbers.push_back(number);
    words.clear();
    for (std::string word; words >> word;)
      words >> (word == "weight_norm" ? norm_dim : word == "warm" ? is_warm : word == "frozen" ? is_frozen : way);
    if ((is_line = num_dims == 1)) {
      num_dims = 2;
      stride.insert(stride.begin(), 1), padding.insert(padding.begin(), 0), dilation.insert(dilation.begin(), 1);
      if (norm_dim > 1) norm_dim++;
    }
  }

  size_t num_weights() const { return norm_dim < 0 ? 1 : 2; }  // before the bias

  at::MemoryFormat last() const {
    return num_dims == 3 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  }

  // Whether it is a product of each pixel.
  bool is_pointwise() const {
    auto all = [](const std::vector<int64_t>& values, int64_t value) {
      return std::all_of(values.begin(), values.end(), [&](int64_t each) { return each == value; });
    };
    return num_dims && groups == 1 && all(stride, 1) && all(padding, 0);  // and of a window of 1
  }

  // Whether oneDNN of torch 2.13 computes it wrongly with channels last: one channel, of which a window of some strides
  // is read beyond its end.
  bool is_misread(const Tensor& weight) const { return num_dims && groups == 1 && weight.size(1) == 1; }

  // Whether its windows lie side by side.
  bool is_of_patches(const Tensor& weight) const {
    return num_dims == 2 && groups == 1 && stride == weight.sizes().slice(2).vec() && weight[0][0].numel() > 1 &&
           padding == std::vector<int64_t>{0, 0} && dilation == std::vector<int64_t>{1, 1};
  }

  c10::List<std::optional<at::Scalar>> scalars() const {
    c10::List<std::optional<at::Scalar>> list;
    for (double number : numbers) list.push_back(at::Scalar(number));
    return list;
  }
};

// APART: the activation afterwards. ROWS: MKL with a transposed matrix, which small ones are fastest by.
// PATCHES: windows side by side, as a product of rows. STREAMED: rows by weights that are read once. GATHERED: the
// same for windows. WINOGRAD: by tiles of 4 x 4 or 2 x 2 pixels. LOW_BIT and BF16, oneDNN's in bfloat16, are for weights
// in fewer bits.
enum class Way {
  TORCH, MKL, MKL_ROWS, MKL_PATCHES, ONEDNN, ONEDNN_APART,
  DIRECT, STREAMED, GATHERED, WINOGRAD_4, WINOGRAD_2,
  LOW_BIT, BF16
};

// Whether it is by kernels of our own in float32, of which the first ones take weights in one layout.
inline bool is_own(Way way) { return way >= Way::DIRECT && way <= Way::WINOGRAD_2; }
inline bool is_in_own_layout(Way way) { return way >= Way::DIRECT && way <= Way::GATHERED; }

// Weights as a way wants them.
struct Packed {
  Way way;
  Tensor weight;
  Optional bias;
  Tensor scales = {};  // of LOW_BIT
  at::MemoryFormat format = at::MemoryFormat::Contiguous;  // in which MKL_PATCHES reads images
  int64_t num_patches = 0;
};

inline int64_t rows_of(const Form& form, const Tensor& x) {
  return x.numel() / std::max<int64_t>(x.size(form.num_dims ? 1 : -1), 1);
}

inline void activate(Tensor& y, const Form& form) {
  const std::string& name = form.activation;
  if (name == "none") return;
  if (name == "relu") at::relu_(y);
  else if (name == "swish") at::silu_(y);
  else if (name == "gelu") at::gelu_(y, form.algorithm);
  else if (name == "hardswish") at::hardswish_(y);
  else if (name == "sigmoid") at::sigmoid_(y);
  else if (name == "tanh") at::tanh_(y);
  else if (name == "hardtanh") at::hardtanh_(y, form.numbers.at(0), form.numbers.at(1));
  else if (name == "leaky_relu") at::leaky_relu_(y, form.numbers.at(0));
  else throw std::runtime_error("passnet: no activation " + name);
}

// The sizes of our own kernels: of convolutions, and of products as rows.
inline direct::Shape shape_of(const Form& form, const Tensor& x, const Tensor& weight) {
  direct::Shape shape;
  shape.out_channels = weight.size(0);
  shape.groups = form.groups;
  if (!form.num_dims) {
    shape.in_channels = weight.size(1);
    shape.width = shape.out_width = x.numel() / std::max<int64_t>(shape.in_channels, 1);
    return shape;
  }
  shape.in_channels = x.size(1);
  auto out = [&](int64_t n) {
    int64_t window = form.dilation[n] * (weight.size(2 + n) - 1) + 1;
    return (x.size(2 + n) + 2 * form.padding[n] - window) / form.stride[n] + 1;
  };
  const int64_t first = form.num_dims - 2;  // of the two dimensions of an image
  shape.height = x.size(2 + first), shape.width = x.size(3 + first);
  shape.rows = weight.size(2 + first), shape.columns = weight.size(3 + first);
  shape.out_height = out(first), shape.out_width = out(first + 1);
  for (int n = 0; n < 2; n++) {
    shape.stride[n] = form.stride[first + n], shape.padding[n] = form.padding[first + n];
    shape.dilation[n] = form.dilation[first + n];
  }
  if (first) {
    shape.frames = x.size(2), shape.out_frames = out(0), shape.depth = weight.size(2);
    shape.frame_stride = form.stride[0], shape.frame_padding = form.padding[0];
  }
  shape.images = x.size(0) * shape.out_frames;
  return shape;
}

// What our own kernels compute of sums: an activation that they have none of is left to `activate`.
inline direct::Finish finish_of(const Packed& packed, const Form& form, const Optional& other) {
  using direct::Activation;
  direct::Finish finish;
  if (packed.bias) finish.bias = packed.bias->const_data_ptr<float>();
  if (other) finish.other = other->const_data_ptr<float>();
  const std::string& name = form.activation;
  if (name == "relu") finish.kind = Activation::RELU;
  else if (name == "hardswish") finish.kind = Activation::HARDSWISH;
  else if (name == "sigmoid") finish.kind = Activation::SIGMOID;
  else if (name == "swish") finish.kind = Activation::SILU;
  else if (name == "gelu" && form.algorithm == "tanh") finish.kind = Activation::GELU_TANH;
  else if (name == "gelu" && direct::HAS_ERF) finish.kind = Activation::GELU;
  else if (name == "tanh" && direct::HAS_ERF) finish.kind = Activation::TANH;
  else if (name == "hardtanh") {
    finish.kind = Activation::CLAMP;
    finish.low = static_cast<float>(form.numbers.at(0)), finish.high = static_cast<float>(form.numbers.at(1));
  }
  return finish;
}

}  // namespace passnet::packed
