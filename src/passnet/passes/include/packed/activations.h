// Vectors of floats, and what is computed of sums before they are stored: bias, another tensor, activation.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "../float_pieces.h"

namespace passnet::direct {

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX2__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef float Loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

inline Lanes load(const float* from) { return *reinterpret_cast<const Loose*>(from); }
inline void store(float* to, Lanes value) { *reinterpret_cast<Loose*>(to) = value; }

// Keeps a value in a register; the compiler would rather read it from memory for each use.
inline Lanes in_register(Lanes value) {
#if defined(__AVX512F__)
  asm("" : "+v"(value));
#elif defined(__AVX2__)
  asm("" : "+x"(value));
#endif
  return value;
}

// Minus zero changes nothing, plus zero would.
inline Lanes all(float value) { return value - Lanes{}; }

// The first of a vector's numbers, up to all; the others are zero.
inline Lanes load_some(const float* from, int64_t count) {
  if (count >= LANES) return load(from);
#if defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm512_maskz_loadu_ps((1 << count) - 1, from));
#else
  Lanes value{};
  std::memcpy(&value, from, count * sizeof(float));
  return value;
#endif
}

inline void store_some(float* to, Lanes value, int64_t count) {
  if (count >= LANES) return store(to, value);
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, (1 << count) - 1, reinterpret_cast<__m512>(value));
#else
  std::memcpy(to, &value, count * sizeof(float));
#endif
}

// e to the x, to 2 in the last place. Without AVX-512, 2 to the n times a polynomial of what is left, with the
// coefficients of the Cephes library. NaN stays.
inline Lanes exponential(Lanes x) {
#if defined(__AVX512F__)
  return pieces::exp(x);
#else
  typedef int32_t Whole __attribute__((vector_size(4 * LANES)));
  x = x < all(-87.0f) ? all(-87.0f) : x;
  x = x > all(89.0f) ? all(89.0f) : x;  // infinite
  Lanes half = x < Lanes{} ? all(-0.5f) : all(0.5f);
  Whole n = __builtin_convertvector(x * all(1.44269504f) + half, Whole);  // towards zero
  Lanes whole = __builtin_convertvector(n, Lanes);
  Lanes r = x - whole * all(0.693359375f) + whole * all(2.12194440e-4f);
  Lanes sum = all(1.9875691500e-4f);
  for (float next : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    sum = sum * r + all(next);
  sum = sum * r * r + r + all(1);
  return sum * reinterpret_cast<Lanes>((n + 127) << 23);
#endif
}

enum class Activation { NONE, RELU, CLAMP, HARDSWISH, SIGMOID, SILU, GELU_TANH, TANH, GELU };

// Whether there are TANH and GELU.
#if defined(__AVX512F__)
constexpr bool HAS_ERF = true;
#else
constexpr bool HAS_ERF = false;
#endif

// Calls a function for an activation, if it is one of `KINDS`, which is a constant there.
template <Activation... KINDS>
inline bool by_kind(Activation kind, auto&& function) {
  return ((kind == KINDS && (function.template operator()<KINDS>(), true)) || ...);
}

// What is computed of the sums.
struct Finish {
  Activation kind = Activation::NONE;
  float low = 0, high = 0;  // of CLAMP
  const float* bias = nullptr;
  const float* other = nullptr;

  // The activation of sums; NaN stays.
  template <Activation KIND>
  Lanes of(Lanes value) const {
    if constexpr (KIND == Activation::RELU) value = value < Lanes{} ? Lanes{} : value;
    if constexpr (KIND == Activation::CLAMP) {
      value = value < all(low) ? all(low) : value;
      value = value > all(high) ? all(high) : value;
    }
    if constexpr (KIND == Activation::HARDSWISH) {
      Lanes factor = value + all(3);
      factor = factor < Lanes{} ? Lanes{} : factor;
      value *= (factor > all(6) ? all(6) : factor) * all(1.0f / 6);
    }
    if constexpr (KIND == Activation::SIGMOID) value = all(1) / (all(1) + exponential(-value));
    if constexpr (KIND == Activation::SILU) value = value / (all(1) + exponential(-value));
    if constexpr (KIND == Activation::GELU_TANH) {  // (1 + tanh(z)) / 2 is 1 / (1 + exp(-2 z))
      Lanes z = (value + value * value * value * all(0.044715f)) * all(0.7978845608f);
      value = value / (all(1) + exponential(all(-2) * z));
    }
#if defined(__AVX512F__)
    if constexpr (KIND == Activation::TANH) value = pieces::tanh(value);
    if constexpr (KIND == Activation::GELU) value *= (all(1) + pieces::erf(value * all(0.7071067812f))) * all(0.5f);
#endif
    return value;
  }

  // Hands the activations of sums to `store`, by number. The usual ones stay in registers.
  template <int COUNT>
  void activate(const Lanes (&sums)[COUNT], auto&& store) const {
    using enum Activation;
    auto hand = [&]<Activation KIND>() {
#pragma GCC unroll 24
      for (int i = 0; i < COUNT; i++) store(i, of<KIND>(sums[i]));
    };
    if (by_kind<NONE, RELU, CLAMP, HARDSWISH, SIGMOID, SILU>(kind, hand)) return;
    Lanes values[COUNT];  // not the sums, as what has an address is in no register
#pragma GCC unroll 24
    for (int i = 0; i < COUNT; i++) values[i] = sums[i];
    activate_long(values, COUNT);
#pragma GCC unroll 24
    for (int i = 0; i < COUNT; i++) store(i, values[i]);
  }

  // Stores the first `count` of some sums, which have the bias, with what else is computed of them; places are `step`
  // apart.
  template <int COUNT>
  void put(Lanes (&sums)[COUNT], float* y, int64_t place, int64_t step, int64_t count, int64_t lanes) const {
    if (other) {
#pragma GCC unroll 4
      for (int i = 0; i < COUNT; i++)
        if (i < count) sums[i] += load_some(other + place + i * step, lanes);
    }
    activate(sums, [&](int i, Lanes value) {
      if (i < count) store_some(y + place + i * step, value, lanes);
    });
  }

  // Stores some rows of sums of `channel` and `count - 1` after it, with all that is computed of them. Rows of sums are
  // `step` apart, those of the result, which begins at `place`, `pitch`.
  void put_rows(const float* sums, int64_t step, int64_t rows, int64_t count, float* y, int64_t place, int64_t pitch,
                int64_t channel) const {
    using enum Activation;
    by_kind<NONE, RELU, CLAMP, HARDSWISH, SIGMOID, SILU, GELU_TANH, TANH, GELU>(kind, [&]<Activation KIND>() {
      for (int64_t row = 0; row < rows; row++, sums += step, place += pitch) {
        auto take = [&](int64_t i, int64_t lanes) {
          Lanes sum = load_some(sums + i, lanes);
          if (bias) sum += load_some(bias + channel + i, lanes);
          if (other) sum += load_some(other + place + i, lanes);
          store_some(y + place + i, of<KIND>(sum), lanes);
        };
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES) take(i, LANES);
        if (i < count) take(i, count - i);
      }
    });
  }

 private:
  // One for all callers, as there are many and each copy takes long to compile.
  [[gnu::noinline]] void activate_long(Lanes* values, int count) const {
    using enum Activation;
    by_kind<GELU_TANH, TANH, GELU>(kind, [&]<Activation KIND>() {
#pragma GCC unroll 4
      for (int i = 0; i < count; i++) values[i] = of<KIND>(values[i]);
    });
  }
};

}  // namespace passnet::direct
