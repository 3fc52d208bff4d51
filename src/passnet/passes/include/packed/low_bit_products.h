// Products of a few rows by weights in 8 or 4 bits, where reading the weights takes the time.
//
// Each row is rounded to 8 bits with a scale for every BLOCK of inputs, and multiplied in whole numbers.
// Weights in 8 bits have a scale for each output. Those in 4 bits are levels of the normal distribution
// (NF4: Dettmers et al. 2023, arXiv 2305.14314, appendix E) with a scale for each block of an output.
#pragma once

#include <ATen/Parallel.h>

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#include <immintrin.h>
#define PASSNET_VNNI 1
#else
#define PASSNET_VNNI 0
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace passnet::low_bit {

constexpr int64_t BLOCK = 64;  // bytes of a vector
constexpr int LANES = 16;      // sums of a vector, of four bytes each
constexpr int TOGETHER = 4;    // outputs whose sums are in registers at once
constexpr int MOST_ROWS = 4;   // and rows
constexpr int ZERO = 128;      // weights are stored as bytes from 0 on
constexpr int AHEAD = 8192;    // bytes between what is computed and what is fetched

// NF4's levels, of 127.
constexpr int8_t LEVELS[16] = {-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127};

inline int64_t blocks_of(int64_t inputs) { return (inputs + BLOCK - 1) / BLOCK; }

// Weights (outputs, inputs), filled up with zeros to full blocks and to a multiple of TOGETHER. They lie in
// the order of reading: vectors of bytes [outputs / TOGETHER, vectors of an output, TOGETHER], and the scales
// of 4 bits likewise. There a byte holds an input of an even block, and above it the one of the next block.
struct Weights {
  int64_t outputs, inputs;
  int bits;
  uint8_t* bytes = nullptr;
  float* scales = nullptr;

  int64_t blocks() const { return bits == 4 ? (blocks_of(inputs) + 1) / 2 * 2 : blocks_of(inputs); }
  int64_t padded() const { return (outputs + TOGETHER - 1) / TOGETHER * TOGETHER; }
  int64_t vectors() const { return blocks() * bits / 8; }
  int64_t bytes_of_output() const { return vectors() * BLOCK; }
  uint8_t* vector_of(int64_t output, int64_t vector) const {
    return bytes + ((output / TOGETHER * vectors() + vector) * TOGETHER + output % TOGETHER) * BLOCK;
  }
  float& scale_of(int64_t output, int64_t block) const {
    return scales[(output / TOGETHER * scales_of_output() + block) * TOGETHER + output % TOGETHER];
  }
  int64_t scales_of_output() const { return bits == 4 ? blocks() : 1; }
};

inline uint8_t nearest_level(float value) {
  int best = 0;
  for (int level = 1; level < 16; level++)
    if (std::abs(LEVELS[level] - value) < std::abs(LEVELS[best] - value)) best = level;
  return static_cast<uint8_t>(best);
}

// Rounds the weights of one output; false where one is not finite.
inline bool pack_output(const Weights& to, int64_t output, const float* from) {
  for (int64_t v = 0; v < to.vectors(); v++) std::memset(to.vector_of(output, v), to.bits == 4 ? 0x77 : ZERO, BLOCK);
  for (int64_t group = 0; group < to.scales_of_output(); group++) to.scale_of(output, group) = 0;
  if (output >= to.outputs) return true;
  int64_t step = to.bits == 4 ? BLOCK : to.inputs;
  for (int64_t start = 0, group = 0; start < to.inputs; start += step, group++) {
    int64_t end = std::min(start + step, to.inputs);
    float most = 0;
    for (int64_t i = start; i < end; i++) {
      if (!std::isfinite(from[i])) return false;
      most = std::max(most, std::abs(from[i]));
    }
    to.scale_of(output, group) = most / 127;
    float factor = most > 1e-30f ? 127 / most : 0;
    for (int64_t i = start; i < end; i++) {
      if (to.bits == 8) {
        to.vector_of(output, i / BLOCK)[i % BLOCK] = static_cast<uint8_t>(ZERO + std::lrintf(from[i] * factor));
        continue;
      }
      uint8_t& byte = to.vector_of(output, group / 2)[i - start];
      int shift = group % 2 * 4;
      byte = static_cast<uint8_t>((byte & ~(15 << shift)) | nearest_level(from[i] * factor) << shift);
    }
  }
  return true;
}

inline bool pack(const Weights& to, const float* from) {
  std::atomic<bool> is_finite = true;
  at::parallel_for(0, to.padded(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t output = begin; output < end; output++)
      if (!pack_output(to, output, from + output * to.inputs)) is_finite = false;
  });
  return is_finite;
}

// Rows in 8 bits.
struct Rows {
  int64_t blocks;
  std::vector<int8_t> numbers;  // [rows, blocks, BLOCK]
  std::vector<int32_t> starts;  // [rows, blocks, LANES]: sums begin with what ZERO adds to them, negative
  std::vector<float> scales;    // [rows, blocks]
  bool is_finite = true;

  Rows(const float* x, int64_t rows, int64_t inputs, int64_t blocks)
      : blocks(blocks), numbers(rows * blocks * BLOCK), starts(rows * blocks * LANES), scales(rows * blocks) {
    for (int64_t row = 0; row < rows; row++)
      for (int64_t start = 0; start < inputs; start += BLOCK)
        round(x + row * inputs + start, std::min(BLOCK, inputs - start), row * blocks + start / BLOCK);
  }

 private:
  void round(const float* from, int64_t count, int64_t place) {
    float most = 0;
    for (int64_t i = 0; i < count; i++) {
      is_finite = is_finite && std::isfinite(from[i]);
      most = std::max(most, std::abs(from[i]));
    }
    if (!is_finite) return;
    scales[place] = most / 127;
    float factor = most > 1e-30f ? 127 / most : 0;
    int8_t* to = numbers.data() + place * BLOCK;
    for (int64_t i = 0; i < count; i++) to[i] = static_cast<int8_t>(std::lrintf(from[i] * factor));
    int32_t* start = starts.data() + place * LANES;
    for (int lane = 0; lane < LANES; lane++)
      start[lane] = -ZERO * (to[4 * lane] + to[4 * lane + 1] + to[4 * lane + 2] + to[4 * lane + 3]);
  }
};

// The sums of some outputs from one on, before the scales of 8 bits.
#if PASSNET_VNNI
template <int ROWS, int BITS>
[[gnu::noinline]] void sum_up(const Weights& w, int64_t output, const Rows& x, int64_t row, float (*to)[TOGETHER]) {
  __m512 sums[ROWS][TOGETHER];
#pragma GCC unroll 4
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
    for (int o = 0; o < TOGETHER; o++) sums[r][o] = _mm512_setzero_ps();
  const uint8_t* bytes = w.vector_of(output, 0);
  const float* scales = &w.scale_of(output, 0);
  alignas(16) uint8_t levels[16];
  for (int level = 0; level < 16; level++) levels[level] = static_cast<uint8_t>(LEVELS[level] + ZERO);
  const __m512i table = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(levels)));
  const __m512i low = _mm512_set1_epi8(15);
  constexpr int PARTS = 8 / BITS;  // blocks of a vector of bytes
  for (int64_t block = 0; block < x.blocks; block += PARTS, bytes += TOGETHER * BLOCK) {
#pragma GCC unroll 4
    for (int o = 0; o < TOGETHER; o++) {
      const uint8_t* at = bytes + o * BLOCK;
      _mm_prefetch(reinterpret_cast<const char*>(at + AHEAD), _MM_HINT_T0);
      const __m512i packed = _mm512_loadu_si512(at);
#pragma GCC unroll 2
      for (int part = 0; part < PARTS; part++) {
        __m512i weights = packed;
        if constexpr (BITS == 4)
          weights = _mm512_shuffle_epi8(table, _mm512_and_si512(part ? _mm512_srli_epi16(packed, 4) : packed, low));
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
          int64_t place = (row + r) * x.blocks + block + part;
          __m512i found = _mm512_dpbusd_epi32(_mm512_loadu_si512(x.starts.data() + place * LANES), weights,
                                              _mm512_loadu_si512(x.numbers.data() + place * BLOCK));
          __m512 scale = _mm512_set1_ps(x.scales[place]);
          if constexpr (BITS == 4) scale = _mm512_mul_ps(scale, _mm512_set1_ps(scales[(block + part) * TOGETHER + o]));
          sums[r][o] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(found), scale, sums[r][o]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
    for (int o = 0; o < TOGETHER; o++) to[r][o] = _mm512_reduce_add_ps(sums[r][o]);
}
#else
typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));

// A block of weights as numbers of 16 bits, whose products compilers know how to add.
template <int BITS>
void widen(const uint8_t* at, bool is_second, int16_t* to) {
  alignas(16) uint8_t bytes[BLOCK];
  if constexpr (BITS == 4) {
    Bytes levels;
    for (int level = 0; level < 16; level++) levels[level] = static_cast<uint8_t>(LEVELS[level] + ZERO);
    for (int64_t i = 0; i < BLOCK; i += sizeof(Bytes)) {
      Bytes packed = *reinterpret_cast<const Bytes*>(at + i);
      packed = (is_second ? packed >> 4 : packed) & 15;
      *reinterpret_cast<Bytes*>(bytes + i) = __builtin_shuffle(levels, packed);
    }
    at = bytes;
  }
  for (int64_t i = 0; i < BLOCK; i++) to[i] = static_cast<int16_t>(at[i] - ZERO);
}

template <int ROWS, int BITS>
void sum_up(const Weights& w, int64_t output, const Rows& x, int64_t row, float (*to)[TOGETHER]) {
  for (int o = 0; o < TOGETHER; o++) {
    for (int r = 0; r < ROWS; r++) to[r][o] = 0;
    for (int64_t block = 0; block < x.blocks; block++) {
      int16_t weights[BLOCK];
      widen<BITS>(w.vector_of(output + o, block * BITS / 8), block % 2, weights);
      for (int r = 0; r < ROWS; r++) {
        int64_t place = (row + r) * x.blocks + block;
        const int8_t* numbers = x.numbers.data() + place * BLOCK;
        int32_t found = 0;
        for (int64_t i = 0; i < BLOCK; i++) found += weights[i] * static_cast<int16_t>(numbers[i]);
        float scale = x.scales[place];
        if constexpr (BITS == 4) scale *= w.scale_of(output + o, block);
        to[r][o] += static_cast<float>(found) * scale;
      }
    }
  }
}
#endif

template <int ROWS>
void some_rows(const Weights& w, const Rows& x, int64_t row, float* y) {
  at::parallel_for(0, w.padded() / TOGETHER, 16, [&](int64_t begin, int64_t end) {
    float sums[ROWS][TOGETHER];
    for (int64_t output = begin * TOGETHER; output < end * TOGETHER; output += TOGETHER) {
      w.bits == 8 ? sum_up<ROWS, 8>(w, output, x, row, sums) : sum_up<ROWS, 4>(w, output, x, row, sums);
      for (int r = 0; r < ROWS; r++)
        for (int64_t o = output; o < std::min(output + TOGETHER, w.outputs); o++)
          y[(row + r) * w.outputs + o] = sums[r][o - output] * (w.bits == 8 ? w.scale_of(o, 0) : 1);
    }
  });
}

// Multiplies rows by weights; false, and nothing is written, where a row holds what is not finite.
inline bool multiply(const Weights& w, const float* x, int64_t num_rows, float* y) {
  Rows rows(x, num_rows, w.inputs, w.blocks());
  if (!rows.is_finite) return false;
  for (int64_t row = 0; row < num_rows; row += MOST_ROWS) switch (num_rows - row) {
      case 1: some_rows<1>(w, rows, row, y); break;
      case 2: some_rows<2>(w, rows, row, y); break;
      case 3: some_rows<3>(w, rows, row, y); break;
      default: some_rows<MOST_ROWS>(w, rows, row, y);
    }
  return true;
}

}  // namespace passnet::low_bit
