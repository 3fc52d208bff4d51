// The kernels of direct_convolution.h and streamed_rows.h, and the memory of kept_memory.h, for test_direct_convolution.py.
#include "packed/direct_convolution.h"
#include "packed/kept_memory.h"
#include "packed/streamed_rows.h"

extern "C" int64_t packed_size(const int64_t* sizes);

namespace {

passnet::direct::Shape shape_of(const int64_t* sizes) {
  passnet::direct::Shape shape;
  int64_t* own[] = {&shape.images, &shape.height, &shape.width, &shape.out_height, &shape.out_width,
                    &shape.rows, &shape.columns, &shape.stride[0], &shape.stride[1], &shape.padding[0],
                    &shape.padding[1], &shape.dilation[0], &shape.dilation[1], &shape.groups,
                    &shape.in_channels, &shape.out_channels};
  for (int64_t* each : own) *each = *sizes++;
  return shape;
}

}  // namespace

extern "C" int64_t packed_size(const int64_t* sizes) { return passnet::direct::packed_size(shape_of(sizes)); }

extern "C" int num_activations() { return passnet::direct::HAS_ERF ? 9 : 7; }

extern "C" void convolve(const int64_t* sizes, const float* x, const float* weight, float* packed, float* y,
                         const float* bias, const float* other, int kind) {
  passnet::direct::Shape shape = shape_of(sizes);
  passnet::direct::Finish finish{static_cast<passnet::direct::Activation>(kind), -0.5f, 0.25f, bias, other};
  passnet::direct::pack(shape, weight, packed);
  passnet::direct::convolve(shape, x, packed, y, finish);
}

extern "C" void gather(const int64_t* sizes, const float* x, const float* weight, float* packed, float* windows,
                       float* y) {
  passnet::direct::Shape shape = shape_of(sizes), rows = passnet::direct::rows_of_windows(shape);
  passnet::direct::pack(shape, weight, packed);
  passnet::direct::gather(shape, x, windows);
  passnet::direct::stream(rows, windows, packed, y, {});
}

extern "C" void stream(const int64_t* sizes, const float* x, const float* weight, float* packed, float* y,
                       const float* bias, const float* other) {
  passnet::direct::Shape shape = shape_of(sizes);
  passnet::direct::pack(shape, weight, packed);
  passnet::direct::stream(shape, x, packed, y,
                          {.kind = passnet::direct::Activation::RELU, .bias = bias, .other = other});
}

std::vector<at::Tensor> held;

extern "C" void hold(int64_t count, int64_t numbers) {
  for (int64_t i = 0; i < count; i++) {
    held.push_back(passnet::empty_kept({numbers}, at::MemoryFormat::Contiguous));
    held.back().fill_(1);
  }
}

extern "C" void drop(int64_t count) { held.erase(held.begin(), held.begin() + count); }

extern "C" void drop_last(int64_t count) { held.erase(held.end() - count, held.end()); }
