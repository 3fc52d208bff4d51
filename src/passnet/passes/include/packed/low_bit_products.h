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
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace passnet::low_bit {

constexpr int64_t BLOCK = 64;  // inputs that share a scale
constexpr int64_t QUAD = 4;     // inputs whose products one instruction adds
constexpr int LANES = 16;       // outputs of a vector of bytes, each with a quad of inputs
constexpr int TOGETHER = 2;     // vectors of outputs whose sums are in registers at once
constexpr int64_t PANEL = TOGETHER * LANES;
constexpr int64_t VECTOR = LANES * QUAD;  // bytes
constexpr int MOST_ROWS = 4;    // whose sums are in registers at once
constexpr int ZERO = 128;      // weights are stored as bytes from 0 on

// Fetches what is computed some KB later. Intel's processors wait for fewer lines in the first cache than in the second.
template <int BITS>
inline void fetch(const uint8_t* bytes) {
  auto* from = reinterpret_cast<const char*>(bytes);
#ifdef __AMX_TILE__
  if constexpr (BITS == 8) _mm_prefetch(from + 2048, _MM_HINT_T0);
  else _mm_prefetch(from + 4096, _MM_HINT_T1);
#elif PASSNET_VNNI
  _mm_prefetch(from + 8192, _MM_HINT_T0);
#endif
}

// NF4's levels, of 127.
constexpr int8_t LEVELS[16] = {-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127};

inline int64_t blocks_of(int64_t inputs) { return (inputs + BLOCK - 1) / BLOCK; }

// Weights (outputs, inputs), filled up with zeros to full blocks and panels. They lie in the order of reading: for each
// panel of outputs the quads of inputs, for each of them the vectors of outputs. With 4 bits, a byte holds an input of
// an even block, and above it the one of the next block. Scales of blocks lie likewise, in bfloat16; 8 bits have one of
// float32 for all inputs.
struct Weights {
  int64_t outputs, inputs;
  int bits;
  uint8_t* bytes = nullptr;
  void* scales = nullptr;

  int64_t blocks() const { return bits == 4 ? (blocks_of(inputs) + 1) / 2 * 2 : blocks_of(inputs); }
  int64_t padded() const { return (outputs + PANEL - 1) / PANEL * PANEL; }
  int64_t bytes_of_output() const { return blocks() * BLOCK * bits / 8; }
  int64_t scales_of_output() const { return bits == 4 ? blocks() : 1; }
  int64_t bytes_of_scales() const { return padded() * scales_of_output() * (bits == 4 ? 2 : 4); }
  uint8_t* quad_of(int64_t output, int64_t number) const {
    int64_t vector = (output / PANEL * bytes_of_output() / QUAD + number) * TOGETHER + output % PANEL / LANES;
    return bytes + (vector * LANES + output % LANES) * QUAD;
  }
  int64_t place_of_scale(int64_t output, int64_t block) const {
    return (output / PANEL * scales_of_output() + block) * PANEL + output % PANEL;
  }
  float* whole_scale(int64_t output) const { return static_cast<float*>(scales) + place_of_scale(output, 0); }
  uint16_t* half_scale(int64_t output, int64_t block) const {
    return static_cast<uint16_t*>(scales) + place_of_scale(output, block);
  }
  float scale_of(int64_t output, int64_t block) const {
    if (bits == 8) return *whole_scale(output);
    return std::bit_cast<float>(static_cast<uint32_t>(*half_scale(output, block)) << 16);
  }
  // Returns the scale as it is kept.
  float set_scale(int64_t output, int64_t block, float scale) const {
    if (bits == 8) return *whole_scale(output) = scale;
    uint32_t word = std::bit_cast<uint32_t>(scale);
    *half_scale(output, block) = static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);  // to the nearest
    return scale_of(output, block);
  }
};

inline uint8_t nearest_level(float value) {
  int best = 0;
  for (int level = 1; level < 16; level++)
    if (std::abs(LEVELS[level] - value) < std::abs(LEVELS[best] - value)) best = level;
  return static_cast<uint8_t>(best);
}

// Rounds the weights of one output; false where one is not finite.
inline bool pack_output(const Weights& to, int64_t output, const float* from) {
  for (int64_t quad = 0; quad < to.bytes_of_output() / QUAD; quad++)
    std::memset(to.quad_of(output, quad), to.bits == 4 ? 0x77 : ZERO, QUAD);
  for (int64_t group = 0; group < to.scales_of_output(); group++) to.set_scale(output, group, 0);
  if (output >= to.outputs) return true;
  int64_t step = to.bits == 4 ? BLOCK : to.inputs;
  for (int64_t start = 0, group = 0; start < to.inputs; start += step, group++) {
    int64_t end = std::min(start + step, to.inputs);
    float most = 0;
    for (int64_t i = start; i < end; i++) {
      if (!std::isfinite(from[i])) return false;
      most = std::max(most, std::abs(from[i]));
    }
    const float scale = to.set_scale(output, group, most / 127);
    float factor = most > 1e-30f ? 1 / scale : 0;
    for (int64_t i = start; i < end; i++) {
      if (to.bits == 8) {
        to.quad_of(output, i / QUAD)[i % QUAD] = static_cast<uint8_t>(ZERO + std::lrintf(from[i] * factor));
        continue;
      }
      uint8_t& byte = to.quad_of(output, (group / 2 * BLOCK + i % BLOCK) / QUAD)[i % QUAD];
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
  std::vector<int32_t> starts;  // [rows, blocks]: what ZERO adds to a sum of products, negative
  std::vector<float> scales;    // [rows, blocks]
  bool is_finite = true;

  Rows(const float* x, int64_t rows, int64_t inputs, int64_t blocks)
      : blocks(blocks), numbers(rows * blocks * BLOCK), starts(rows * blocks), scales(rows * blocks) {
    for (int64_t row = 0; row < rows; row++)
      for (int64_t start = 0; start < inputs && is_finite; start += BLOCK)
        round(x + row * inputs + start, std::min(BLOCK, inputs - start), row * blocks + start / BLOCK);
  }

 private:
#if PASSNET_VNNI
  void round(const float* from, int64_t count, int64_t place) {
    __m512 values[BLOCK / LANES], most = _mm512_setzero_ps(), zero = most;
#pragma GCC unroll 4
    for (int v = 0; v < BLOCK / LANES; v++) {
      int64_t rest = std::clamp<int64_t>(count - v * LANES, 0, LANES);
      values[v] = _mm512_maskz_loadu_ps(static_cast<__mmask16>((1 << rest) - 1), from + v * LANES);
      most = _mm512_max_ps(most, _mm512_abs_ps(values[v]));
      zero = _mm512_add_ps(zero, _mm512_sub_ps(values[v], values[v]));
    }
    is_finite = _mm512_cmp_ps_mask(zero, _mm512_setzero_ps(), _CMP_EQ_OQ) == 0xffff;
    float largest = _mm512_reduce_max_ps(most);
    scales[place] = largest / 127;
    const __m512 factor = _mm512_set1_ps(largest > 1e-30f ? 127 / largest : 0);
    __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int v = 0; v < BLOCK / LANES; v++) {
      __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(values[v], factor));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(numbers.data() + place * BLOCK + v * LANES),
                       _mm512_cvtsepi32_epi8(whole));
      sum = _mm512_add_epi32(sum, whole);
    }
    starts[place] = -ZERO * _mm512_reduce_add_epi32(sum);
  }
#else
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
    int32_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += to[i] = static_cast<int8_t>(std::lrintf(from[i] * factor));
    starts[place] = -ZERO * sum;
  }
#endif
};

// The sums of the outputs of a panel, before the scales of 8 bits.
template <int ROWS, int BITS>
[[gnu::noinline]] void sum_up(const Weights& w, int64_t panel, const Rows& x, int64_t row, float (*to)[PANEL]) {
  constexpr int PARTS = 8 / BITS;  // blocks whose inputs a byte holds
  const uint8_t* bytes = w.quad_of(panel * PANEL, 0);
  alignas(16) uint8_t levels[16];
  for (int level = 0; level < 16; level++) levels[level] = static_cast<uint8_t>(LEVELS[level] + ZERO);
#if PASSNET_VNNI
  constexpr int CHAINS = ROWS == 1 ? 2 : 1;  // sums of each output, as an instruction waits for the one before
  const __m512i table = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(levels)));
  const __m512i low = _mm512_set1_epi8(15);
  __m512 sums[ROWS][TOGETHER] = {};
  for (int64_t block = 0; block < x.blocks; block += PARTS) {
    __m512i found[ROWS][PARTS][TOGETHER][CHAINS];
    const int8_t* numbers[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) {
      numbers[r] = x.numbers.data() + ((row + r) * x.blocks + block) * BLOCK;
#pragma GCC unroll 2
      for (int part = 0; part < PARTS; part++)
#pragma GCC unroll 4
        for (int t = 0; t < TOGETHER * CHAINS; t++)
          found[r][part][t % TOGETHER][t / TOGETHER] =
              t < TOGETHER ? _mm512_set1_epi32(x.starts[(row + r) * x.blocks + block + part]) : _mm512_setzero_si512();
    }
    for (int64_t quad = 0; quad < BLOCK / QUAD; quad += CHAINS) {
#pragma GCC unroll 4
      for (int step = 0; step < CHAINS * TOGETHER; step++, bytes += VECTOR) {
        const int chain = step / TOGETHER, t = step % TOGETHER;
        fetch<BITS>(bytes);
        const __m512i packed = _mm512_loadu_si512(bytes);
#pragma GCC unroll 2
        for (int part = 0; part < PARTS; part++) {
          __m512i weights = packed;
          if constexpr (BITS == 4)
            weights = _mm512_shuffle_epi8(table, _mm512_and_si512(part ? _mm512_srli_epi16(packed, 4) : packed, low));
#pragma GCC unroll 4
          for (int r = 0; r < ROWS; r++) {
            int32_t four;
            std::memcpy(&four, numbers[r] + part * BLOCK + (quad + chain) * QUAD, QUAD);
            found[r][part][t][chain] = _mm512_dpbusd_epi32(found[r][part][t][chain], weights, _mm512_set1_epi32(four));
          }
        }
      }
    }
#pragma GCC unroll 2
    for (int part = 0; part < PARTS; part++)
#pragma GCC unroll 2
      for (int t = 0; t < TOGETHER; t++)
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
          __m512i whole = found[r][part][t][0];
          if constexpr (CHAINS == 2) whole = _mm512_add_epi32(whole, found[r][part][t][1]);
          __m512 scale = _mm512_set1_ps(x.scales[(row + r) * x.blocks + block + part]);
          if constexpr (BITS == 4) {
            auto* own = reinterpret_cast<const __m256i*>(w.half_scale(panel * PANEL, block + part) + t * LANES);
            __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(own)), 16);
            scale = _mm512_mul_ps(scale, _mm512_castsi512_ps(bits));
          }
          sums[r][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scale, sums[r][t]);
        }
  }
#pragma GCC unroll 4
  for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 2
    for (int t = 0; t < TOGETHER; t++) _mm512_storeu_ps(to[r] + t * LANES, sums[r][t]);
#else
  for (int r = 0; r < ROWS; r++) std::fill(to[r], to[r] + PANEL, 0.0f);
  for (int64_t block = 0; block < x.blocks; block++) {
    const uint8_t* own = bytes + block / PARTS * BLOCK * PANEL;
    int32_t found[ROWS][PANEL] = {};
    for (int64_t quad = 0; quad < BLOCK / QUAD; quad++, own += PANEL * QUAD)
      for (int64_t o = 0; o < PANEL; o++)
        for (int64_t i = 0; i < QUAD; i++) {
          uint8_t byte = own[o * QUAD + i];
          int weight = (BITS == 8 ? byte : levels[block % PARTS ? byte >> 4 : byte & 15]) - ZERO;
          for (int r = 0; r < ROWS; r++)
            found[r][o] += weight * x.numbers[((row + r) * x.blocks + block) * BLOCK + quad * QUAD + i];
        }
    for (int r = 0; r < ROWS; r++)
      for (int64_t o = 0; o < PANEL; o++) {
        float scale = x.scales[(row + r) * x.blocks + block];
        if constexpr (BITS == 4) scale *= w.scale_of(panel * PANEL + o, block);
        to[r][o] += static_cast<float>(found[r][o]) * scale;
      }
  }
#endif
}

template <int ROWS>
void some_rows(const Weights& w, const Rows& x, int64_t row, float* y) {
  at::parallel_for(0, w.padded() / PANEL, 2, [&](int64_t begin, int64_t end) {
    float sums[ROWS][PANEL];
    for (int64_t panel = begin; panel < end; panel++) {
      w.bits == 8 ? sum_up<ROWS, 8>(w, panel, x, row, sums) : sum_up<ROWS, 4>(w, panel, x, row, sums);
      for (int r = 0; r < ROWS; r++)
        for (int64_t o = panel * PANEL; o < std::min((panel + 1) * PANEL, w.outputs); o++)
          y[(row + r) * w.outputs + o] = sums[r][o % PANEL] * (w.bits == 8 ? w.scale_of(o, 0) : 1);
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
