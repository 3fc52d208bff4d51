// The ways to compute a product or convolution by packed weights.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_weight_norm.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros_like.h>

#include <dlfcn.h>

#include "form.h"
#include "kept_memory.h"
#include "low_bit_products.h"
#include "streamed_rows.h"
#include "winograd.h"

namespace passnet::packed {

template <typename Signature>
inline c10::TypedOperatorHandle<Signature> op(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

using Scalars = c10::List<std::optional<at::Scalar>>;
using Text = std::optional<c10::string_view>;

inline Tensor floats(Chunks& memory, int64_t count) {
  return passnet::bytes_of(memory, count * static_cast<int64_t>(sizeof(float))).view(at::kFloat);
}

using LargeTiles = direct::winograd::Tiles<4>;
using SmallTiles = direct::winograd::Tiles<2>;

inline Tensor packed_for_own(Way way, const direct::Shape& shape, const Tensor& weight, Chunks& memory) {
  Tensor packed, dense = weight.contiguous();
  const float* from = dense.const_data_ptr<float>();
  auto pack_tiles = [&](const auto& tiles) {
    packed = floats(memory, tiles.packed_size());
    tiles.pack(from, packed.data_ptr<float>());
  };
  if (way == Way::WINOGRAD_4) {
    pack_tiles(LargeTiles(shape));
  } else if (way == Way::WINOGRAD_2) {
    pack_tiles(SmallTiles(shape));
  } else {
    packed = floats(memory, direct::packed_size(shape));
    direct::pack(shape, from, packed.data_ptr<float>());
  }
  return packed;
}

inline Optional in_format(const Optional& tensor, at::MemoryFormat format) {
  return tensor ? Optional(tensor->contiguous(format)) : tensor;
}

template <int CHANNELS>
inline void put_last(const float* __restrict x, int64_t pixels, float* __restrict to) {
  for (int64_t i = 0; i < pixels; i++)
    for (int channel = 0; channel < CHANNELS; channel++) to[i * CHANNELS + channel] = x[channel * pixels + i];
}

// An image with its channels last. Of those with few channels, torch's own copy takes as long as a convolution.
inline Tensor channels_last(const Tensor& x) {
  auto format = x.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  auto put = x.size(1) == 3 ? put_last<3> : x.size(1) == 4 ? put_last<4> : nullptr;
  if (!put || x.dim() == 5 || x.is_contiguous(format) || !x.is_contiguous()) return x.contiguous(format);
  Tensor last = passnet::empty_kept(x.sizes(), format);
  int64_t pixels = x.size(2) * x.size(3), step = x.size(1) * pixels;
  for (int64_t image = 0; image < x.size(0); image++)
    put(x.const_data_ptr<float>() + image * step, pixels, last.data_ptr<float>() + image * step);
  return last;
}

// The numbers from pixel to pixel of images that are some channels of others, with channels last; 0 if `x` is none.
inline int64_t pitch_of(const Tensor& x) {
  if (x.dim() != 4 || x.size(3) < 2) return 0;
  const int64_t pitch = x.stride(3), line = x.size(3) * pitch;
  bool is_last = x.size(1) == 1 || x.stride(1) == 1;
  bool is_even = (x.size(2) == 1 || x.stride(2) == line) && (x.size(0) == 1 || x.stride(0) == x.size(2) * line);
  return is_last && is_even && pitch > x.size(1) ? pitch : 0;
}

// Copies the windows of planes, one a channel, which lie side by side.
inline void gather_planes(const direct::Shape& shape, const float* x, float* to) {
  const int64_t planes = shape.in_channels, size = planes * shape.taps();
  at::parallel_for(0, shape.images * shape.out_height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; number++)
      for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t row = 0; row < shape.rows; row++) {
          int64_t image = number / shape.out_height * planes + plane;
          int64_t line = number % shape.out_height * shape.rows + row;
          const float* at = x + (image * shape.height + line) * shape.width;
          float* place = to + number * shape.out_width * size + (plane * shape.rows + row) * shape.columns;
          for (int64_t i = 0; i < shape.out_width; i++, at += shape.columns, place += size)
            std::memcpy(place, at, shape.columns * sizeof(float));
        }
  });
}

// The numbers of each window, one window after the other: those of a channel together if they are in `x`.
inline Tensor windows_of(const Tensor& x, const direct::Shape& shape, bool is_last) {
  direct::Shape rows = direct::rows_of_windows(shape);
  Tensor windows = passnet::empty_kept({rows.width, rows.in_channels}, at::MemoryFormat::Contiguous);
  (is_last ? direct::gather : gather_planes)(shape, x.const_data_ptr<float>(), windows.data_ptr<float>());
  return windows;
}

// A product or convolution by our own kernels, with the sum and the activation; undefined if some is not finite, or far
// larger than all others, where that would spoil these.
inline Tensor directly(const Packed& packed, const Form& form, const Tensor& values, const Optional& other,
                       const Tensor& given) {
  auto format = form.num_dims ? form.last() : at::MemoryFormat::Contiguous;
  const int64_t pitch = form.num_dims == 2 ? pitch_of(values) : 0;
  Tensor x = pitch ? values : form.num_dims ? channels_last(values) : values.contiguous();
  direct::Shape shape = shape_of(form, x, given);
  shape.in_pitch = pitch;
  std::vector<int64_t> sizes = x.sizes().vec();
  if (form.num_dims == 3)
    sizes = {x.size(0), shape.out_channels, shape.out_frames, shape.out_height, shape.out_width};
  else if (form.num_dims) sizes = {shape.images, shape.out_channels, shape.out_height, shape.out_width};
  else sizes.back() = shape.out_channels;
  Tensor y = passnet::empty_kept(sizes, format);
  Optional added = in_format(other, format);
  direct::Finish finish = finish_of(packed, form, added);
  const float* by = packed.weight.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  bool is_right = true;
  if (packed.way == Way::DIRECT) {
    direct::convolve(shape, x.const_data_ptr<float>(), by, to, finish);
  } else {
    if (packed.way == Way::GATHERED) {
      x = windows_of(x, shape, true);
      shape = direct::rows_of_windows(shape);
    }
    const float* from = x.const_data_ptr<float>();
    if (packed.way == Way::WINOGRAD_4)
      is_right = !direct::winograd::has_outliers(shape, from) && LargeTiles(shape).convolve(from, by, to, finish);
    else if (packed.way == Way::WINOGRAD_2) is_right = SmallTiles(shape).convolve(from, by, to, finish);
    else direct::stream(shape, from, by, to, finish);
  }
  if (!is_right) return {};
  if (finish.kind == direct::Activation::NONE) activate(y, form);
  return y;
}

// MKL's functions for packed matrices, where torch brings them.
struct Mkl {
  size_t (*size)(int, int, int, int);
  void (*pack)(int, int, int, int, int, int, float, const float*, int, float*);
  void (*compute)(int, int, int, int, int, int, const float*, int, const float*, int, float, float*, int);

  void (*multiply)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                   const int*, const float*, const int*, const float*, float*, const int*);  // by columns

  static const Mkl* of_torch() {
    static const Mkl found = [] {
      void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
      auto find = [&](const char* name) { return torch ? dlsym(torch, name) : nullptr; };
      return Mkl{reinterpret_cast<decltype(size)>(find("cblas_sgemm_pack_get_size")),
                 reinterpret_cast<decltype(pack)>(find("cblas_sgemm_pack")),
                 reinterpret_cast<decltype(compute)>(find("cblas_sgemm_compute")),
                 reinterpret_cast<decltype(multiply)>(find("sgemm_"))};
    }();
    return found.size && found.pack && found.compute && found.multiply ? &found : nullptr;
  }
};

// Numbers of mkl_cblas.h.
constexpr float ONE = 1, ZERO = 0;
constexpr int ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112, PACKED = 151, SECOND_MATRIX = 162;

inline Tensor packed_by_mkl(const Tensor& weight, int64_t rows, Chunks& memory) {
  int m = static_cast<int>(rows), n = static_cast<int>(weight.size(0)), k = static_cast<int>(weight.size(1));
  const Mkl& mkl = *Mkl::of_torch();
  size_t bytes = mkl.size(SECOND_MATRIX, m, n, k);
  Tensor packed = floats(memory, static_cast<int64_t>(bytes / sizeof(float) + 1));
  Tensor dense = weight.contiguous();
  mkl.pack(ROW_MAJOR, SECOND_MATRIX, TRANSPOSED, m, n, k, 1.0f, dense.const_data_ptr<float>(), k,
           packed.data_ptr<float>());
  return packed;
}

// Computes the bias, another tensor and the activation of a result of rows that has none of them yet.
inline void finish(Tensor& y, int64_t rows, const Packed& packed, const Form& form, const Optional& other) {
  direct::Finish finish = finish_of(packed, form, other);
  float* to = y.data_ptr<float>();
  const int64_t count = y.numel() / rows;
  if (finish.bias || finish.other || finish.kind != direct::Activation::NONE)
    at::parallel_for(0, rows, std::max<int64_t>(1, 65536 / count), [&](int64_t begin, int64_t end) {
      finish.put_rows(to + begin * count, count, end - begin, count, to, begin * count, count, 0);
    });
  if (finish.kind == direct::Activation::NONE) activate(y, form);
}

// A product of rows by MKL into `y`, with the sum and the activation.
inline void product_of_rows(const Packed& packed, const Form& form, const Tensor& x, const Optional& other,
                     Tensor& y, int64_t rows) {
  int m = static_cast<int>(rows), n = static_cast<int>(y.numel() / rows), k = static_cast<int>(x.numel() / rows);
  const int64_t pitch = form.num_dims ? pitch_of(x) : 0;
  const int step = pitch ? static_cast<int>(pitch) : k;
  float* to = y.data_ptr<float>();
  const float *from = x.const_data_ptr<float>(), *by = packed.weight.const_data_ptr<float>();
  if (packed.way == Way::MKL_ROWS)
    Mkl::of_torch()->multiply("n", "n", &n, &m, &k, &ONE, by, &n, from, &step, &ZERO, to, &n);
  else
    Mkl::of_torch()->compute(ROW_MAJOR, PLAIN, PACKED, m, n, k, from, step, by, k, 0.0f, to, n);
  finish(y, rows, packed, form, other);
}

using Unary = Tensor(const Tensor&, const Tensor&, const Optional&, c10::string_view, Scalars, Text);

inline c10::TypedOperatorHandle<Unary>& linear_of_onednn() {
  static auto found = op<Unary>("mkldnn::_linear_pointwise");
  return found;
}

// Where the processor has no such instructions, oneDNN's bfloat16 is slower than float32.
inline bool multiplies_in_bf16() {
#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  static const bool found = op<bool()>("mkldnn::_is_mkldnn_bf16_supported").call();
  return found;
#else
  return false;
#endif
}

inline low_bit::Weights low_bits(const Form& form, const Tensor& weight, Tensor& bytes, Tensor& scales) {
  low_bit::Weights found{weight.size(0), weight.size(1), form.bits};
  if (!bytes.defined()) {
    bytes = passnet::bytes_of(memory_of_weights(), found.padded() * found.bytes_of_output());
    scales = passnet::bytes_of(memory_of_weights(), found.bytes_of_scales());
  }
  found.bytes = bytes.data_ptr<uint8_t>(), found.scales = scales.data_ptr();
  return found;
}

// The weight and bias with the scales of a batch norm in them, in double precision.
inline std::pair<Tensor, Optional> folded(const Form& form, at::TensorList weights) {
  size_t first = form.num_weights();
  Tensor weight = first == 1 ? weights[0] : at::_weight_norm(weights[0], weights[1], form.norm_dim);
  Optional bias = form.has_bias ? Optional(weights[first]) : std::nullopt;
  if (!form.has_norm) return {weight, bias};
  first += form.has_bias;
  auto exact = [&](size_t number) { return weights[first + number].to(at::kDouble); };
  Tensor scale = exact(0) * at::rsqrt(exact(3) + at::Scalar(form.epsilon));
  Tensor before = bias ? bias->to(at::kDouble) : at::zeros_like(scale);
  std::vector<int64_t> shape(weight.dim(), 1);
  shape[0] = -1;
  return {(weight.to(at::kDouble) * scale.view(shape)).to(weight.scalar_type()),
          ((before - exact(2)) * scale + exact(1)).to(weight.scalar_type())};
}

// A product or convolution with the bias, as torch computes it.
inline Tensor by_torch(const Form& form, const Tensor& values, at::TensorList weights) {
  auto [weight, bias] = folded(form, weights);
  Tensor x = values;
  if (!form.num_dims) return at::linear(x, weight, bias);
  if (form.is_misread(weight))
    for (Tensor* each : {&x, &weight}) *each = each->contiguous().view({-1}).view(each->sizes());  // not channels last
  std::vector<int64_t> none(form.num_dims, 0);
  return at::convolution(x, weight, bias, form.stride, form.padding, form.dilation, false, none, form.groups);
}

// The same with the sum and the activation.
inline Tensor all_by_torch(const Form& form, const Tensor& x, const Optional& other, at::TensorList weights) {
  Tensor y = by_torch(form, x, weights);
  if (other) y = y + *other;
  activate(y, form);
  return y;
}

// A product by weights in fewer bits than the rows have, and the activation.
inline Tensor in_fewer_bits(const Packed& packed, const Form& form, const Tensor& values, at::TensorList given) {
  Tensor x = values.contiguous(), y;
  int64_t outputs = given[0].size(0), rows = rows_of(form, x);
  if (packed.way == Way::BF16) {
    Tensor rounded =
        linear_of_onednn().call(x.to(at::kBFloat16), packed.weight, std::nullopt, "none", Scalars(), Text());
    y = rounded.to(at::kFloat);
  } else {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = outputs;
    y = passnet::empty_kept(sizes, at::MemoryFormat::Contiguous);
    Tensor bytes = packed.weight, scales = packed.scales;
    auto weights = low_bits(form, given[0], bytes, scales);
    if (!low_bit::multiply(weights, x.const_data_ptr<float>(), rows, y.data_ptr<float>()))
      y = at::linear(x, folded(form, given).first);
  }
  finish(y, rows, packed, form, std::nullopt);
  return y;
}

// Whether a call needs the bias as the caller gives it.
inline bool takes_given_bias(const Form& form) { return form.has_bias && !form.has_norm; }

// A product or convolution, the sum with `other`, and the activation.
inline Tensor product(Packed packed, const Form& form, const Tensor& values, const Optional& other,
                      at::TensorList given) {
  if (takes_given_bias(form)) packed.bias = given[form.num_weights()];
  if (!packed.weight.defined()) packed.weight = given[0];
  if (is_own(packed.way)) {
    Tensor found = directly(packed, form, values, other, given[0]);
    return found.defined() ? found : all_by_torch(form, values, other, given);
  }
  if (form.num_dims && packed.way == Way::TORCH) return all_by_torch(form, values, other, given);
  if (packed.way == Way::LOW_BIT || packed.way == Way::BF16) return in_fewer_bits(packed, form, values, given);
  const auto format = form.num_dims ? form.last() : at::MemoryFormat::Contiguous;
  Tensor y;
  if (packed.way == Way::MKL || packed.way == Way::MKL_ROWS) {
    Tensor dense = form.num_dims && pitch_of(values) ? values : values.contiguous(format);
    std::vector<int64_t> sizes = values.sizes().vec();
    sizes[form.num_dims ? 1 : sizes.size() - 1] = given[0].size(0);
    y = passnet::empty_kept(sizes, format);
    product_of_rows(packed, form, dense, in_format(other, format), y, rows_of(form, values));
    return y;
  }
  Tensor x = values.is_non_overlapping_and_dense() ? values : values.contiguous(format);
  // oneDNN's own ReLU and clamp make a zero of NaN
  bool loses_nan = form.activation == "relu" || form.activation == "hardtanh";
  bool is_apart = packed.way == Way::ONEDNN_APART || other || loses_nan;
  const char* attribute = is_apart ? "none" : form.activation.c_str();
  Scalars scalars = is_apart ? Scalars() : form.scalars();
  Text algorithm(form.algorithm);
  if (packed.way == Way::MKL_PATCHES) {
    direct::Shape shape = shape_of(form, x, given[0]);
    if (shape.num_pixels() == packed.num_patches) {
      y = passnet::empty_kept({shape.images, shape.out_channels, shape.out_height, shape.out_width}, form.last());
      Tensor patches = windows_of(x.contiguous(packed.format), shape, packed.format == form.last());
      product_of_rows(packed, form, patches, in_format(other, form.last()), y, packed.num_patches);
      return y;
    }
    return all_by_torch(form, x, other, given);
  }
  if (form.num_dims) {
    auto list = [](const std::vector<int64_t>& values) { return at::IntArrayRef(values); };
    if (other) {
      static auto binary = op<Tensor(const Tensor&, const Tensor&, const Tensor&, const Optional&,
                                     at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                                     c10::string_view, std::optional<at::Scalar>, Text, Scalars, Text)>(
          "mkldnn::_convolution_pointwise", "binary");
      y = binary.call(x, other->contiguous(form.last()), packed.weight, packed.bias, list(form.padding),
                      list(form.stride), list(form.dilation), form.groups, "add", at::Scalar(1), Text(), Scalars(),
                      Text());
      activate(y, form);
      return y;
    } else {
      static auto unary = op<Tensor(const Tensor&, const Tensor&, const Optional&, at::IntArrayRef,
                                    at::IntArrayRef, at::IntArrayRef, int64_t, c10::string_view,
                                    Scalars, Text)>("mkldnn::_convolution_pointwise");
      y = unary.call(x, packed.weight, packed.bias, list(form.padding), list(form.stride),
                     list(form.dilation), form.groups, attribute, scalars, algorithm);
      if (!is_apart) return y;
    }
  } else if (packed.way == Way::TORCH) {
    y = at::linear(x, packed.weight, packed.bias);
  } else {
    y = linear_of_onednn().call(x, packed.weight, packed.bias, attribute, scalars, algorithm);
    if (!is_apart) return y;
  }
  if (other) y.add_(*other);
  activate(y, form);
  return y;
}

// Packs weights. Tensors of the caller are not kept: it may change what they are of, or give others of the same memory.
inline Packed packed_by(Way way, const Form& form, at::TensorList weights, const Tensor& x,
                        Chunks& memory = memory_of_weights()) {
  auto [weight, bias] = folded(form, weights);
  if (takes_given_bias(form)) bias.reset();
  auto unpacked = [&] { return Packed{Way::TORCH, weight.is_same(weights[0]) ? Tensor() : weight, bias}; };
  if (is_own(way)) return {way, packed_for_own(way, shape_of(form, x, weight), weight, memory), bias};
  if (form.num_dims && way == Way::ONEDNN) {
    static auto pack = op<Tensor(const Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                                 at::OptionalIntArrayRef)>("mkldnn::_reorder_convolution_weight");
    return {way, pack.call(weight, form.padding, form.stride, form.dilation, form.groups, x.sizes()), bias};
  }
  if (way == Way::LOW_BIT) {
    Packed packed{way, {}, bias};
    auto to = low_bits(form, weight, packed.weight, packed.scales);
    if (!low_bit::pack(to, weight.contiguous().const_data_ptr<float>())) return unpacked();
    return packed;
  }
  int64_t rows = way == Way::BF16 ? low_bit::BLOCK : rows_of(form, x);
  if (way == Way::BF16) weight = weight.to(at::kBFloat16);
  if (way == Way::TORCH) return unpacked();
  if (way == Way::MKL_ROWS) {
    Tensor rows = weight.flatten(1).t();
    return {way, floats(memory, weight.numel()).view(rows.sizes()).copy_(rows), bias};
  }
  if (way == Way::MKL_PATCHES) {
    auto format = x.is_contiguous() ? at::MemoryFormat::Contiguous : form.last();
    Tensor dense = x.is_contiguous() ? weight : weight.permute({0, 2, 3, 1});
    int64_t patches = shape_of(form, x, weight).num_pixels();
    return {way, packed_by_mkl(dense.reshape({weight.size(0), -1}), patches, memory), bias, {}, format, patches};
  }
  if (way == Way::MKL) return {way, packed_by_mkl(weight.flatten(1), rows, memory), bias};
  static auto pack = op<Tensor(const Tensor&, std::optional<int64_t>)>("mkldnn::_reorder_linear_weight");
  return {way, pack.call(weight, rows), bias};
}

}  // namespace passnet::packed
