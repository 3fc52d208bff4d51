// Registers, and conversions between those of different types, for `inductor_vector.h`.
//
// A register has PASSNET_VECTOR_BYTES, in the vector extension of the compiler, which makes of it
// what the processor has.
#pragma once
#include <utility>

#include "inductor_kernel.h"

#ifndef PASSNET_VECTOR_BYTES
#define PASSNET_VECTOR_BYTES 64
#endif
#define __at_align__ alignas(PASSNET_VECTOR_BYTES)
#define INLINE inline __attribute__((always_inline))

namespace at::vec {

template <int Bytes>
struct IntOf;
template <>
struct IntOf<1> {
  using type = int8_t;
};
template <>
struct IntOf<2> {
  using type = int16_t;
};
template <>
struct IntOf<4> {
  using type = int32_t;
};
template <>
struct IntOf<8> {
  using type = int64_t;
};
template <typename T>
using int_of = typename IntOf<sizeof(T)>::type;

// As what a value lies in a register.
template <typename T>
struct LaneOf {
  using type = T;
};
template <>
struct LaneOf<BFloat16> {
  using type = uint16_t;
};
template <>
struct LaneOf<Half> {
  using type = uint16_t;
};
template <typename T>
constexpr bool is_low = std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>;

template <typename L, int Bytes = PASSNET_VECTOR_BYTES>
struct RegisterOf {
  typedef L type __attribute__((vector_size(Bytes)));
};
template <typename L, int Bytes = PASSNET_VECTOR_BYTES>
using Register = typename RegisterOf<L, Bytes>::type;

template <typename To, typename From>
INLINE To as(const From& value) {
  return passnet::same_bits<To>(value);
}

// A register's floats from float16, and back to the nearest, in one instruction where the processor
// has it; it keeps more bits of a NaN than the arithmetic does.
template <typename Floats, typename Halves>
INLINE Floats floats_of(const Halves& from) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Floats) == 64) {
    using Words = Register<int16_t, 32>;
    return __builtin_ia32_vcvtph2ps512_mask(as<Words>(from), Floats{}, -1, 4);
  }
#endif
#if defined(__F16C__)
  if constexpr (sizeof(Floats) == 32)
    return __builtin_ia32_vcvtph2ps256(as<Register<int16_t, 16>>(from));
#endif
  return passnet::f16_values<Floats>(
      __builtin_convertvector(from, Register<uint32_t, sizeof(Floats)>));
}
template <typename Halves, typename Floats>
INLINE Halves halves_of(const Floats& from) {
  constexpr int to_nearest = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(Floats) == 64) {
    using Words = Register<int16_t, 32>;
    return as<Halves>(__builtin_ia32_vcvtps2ph512_mask(from, to_nearest, Words{}, -1));
  }
#endif
#if defined(__F16C__)
  if constexpr (sizeof(Floats) == 32)
    return as<Halves>(__builtin_ia32_vcvtps2ph256(from, to_nearest));
#endif
  return __builtin_convertvector(
      (passnet::f16_bits_of<Register<uint32_t, sizeof(Floats)>>(from)), Halves);
}

// Some lanes of one value type as another's; bfloat16 to and from float is in `cast_all`.
template <typename D, typename S, int Count>
struct Cast {
  using From = Register<typename LaneOf<S>::type, Count * sizeof(S)>;
  using To = Register<typename LaneOf<D>::type, Count * sizeof(D)>;
  static INLINE To apply(const From& from) {
    if constexpr (std::is_same_v<S, Half> && std::is_same_v<D, float>) {
      return floats_of<To>(from);
    } else if constexpr (std::is_same_v<S, float> && std::is_same_v<D, Half>) {
      return halves_of<To>(from);
    } else if constexpr (is_low<S> || is_low<D>) {
      To to;
      for (int i = 0; i < Count; i++) {
        S value = as<S>(typename LaneOf<S>::type(from[i]));
        to[i] = as<typename LaneOf<D>::type>(c10::convert<D>(value));
      }
      return to;
    } else {
      return __builtin_convertvector(from, To);
    }
  }
};

// A part of a register, and parts put together.
template <typename P, int Place, typename R, size_t... I>
INLINE P part_of(const R& value, std::index_sequence<I...>) {
  return __builtin_shufflevector(value, value, (Place * sizeof...(I) + I)...);
}

template <typename P, size_t... I>
INLINE auto joined(const P& low, const P& high, std::index_sequence<I...>) {
  return __builtin_shufflevector(low, high, I...);
}

template <typename R, typename P>
INLINE R all_joined(const P* parts) {
  if constexpr (sizeof(P) == sizeof(R)) {
    return parts[0];
  } else {
    constexpr size_t width = 2 * sizeof(P) / sizeof(parts[0][0]);
    using Pair = Register<std::decay_t<decltype(parts[0][0])>, 2 * sizeof(P)>;
    Pair pairs[sizeof(R) / sizeof(Pair)];
    for (size_t i = 0; i < sizeof(R) / sizeof(Pair); i++)
      pairs[i] = joined(parts[2 * i], parts[2 * i + 1], std::make_index_sequence<width>());
    return all_joined<R>(pairs);
  }
}

// A register of bfloat16 as two of float: each value is the upper half of one.
template <int Half, size_t... I>
INLINE Register<float> widened(const Register<uint16_t>& value, std::index_sequence<I...>) {
  constexpr int width = sizeof...(I);
  Register<uint16_t> zero = {};
  return as<Register<float>>(__builtin_shuffle(
      zero, value, Register<int16_t>{int16_t(I % 2 ? width + Half * width / 2 + I / 2 : 0)...}));
}

// The nearest values of bfloat16, as floats; and two registers of such floats as one of bfloat16.
INLINE Register<float> nearest(const Register<float>& value) {
  using Words = Register<uint32_t>;
  Words bits = as<Words>(value), quiet = Words{} + 0x7FC00000u;
  Words rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u;
  return as<Register<float>>(value == value ? rounded : quiet);
}

template <size_t... I>
INLINE Register<uint16_t> packed(const Register<float>& low, const Register<float>& high,
                                 std::index_sequence<I...>) {
  using R = Register<uint16_t>;
  return __builtin_shuffle(as<R>(low), as<R>(high), Register<int16_t>{int16_t(2 * I + 1)...});
}

// Registers of a narrow type as more of a wider one.
template <typename D, int DN, typename S, int SN, size_t... I>
INLINE void cast_wider(const Register<typename LaneOf<S>::type>* from,
                       Register<typename LaneOf<D>::type>* to, std::index_sequence<I...>) {
  constexpr int count = PASSNET_VECTOR_BYTES / sizeof(D), num_parts = sizeof(D) / sizeof(S);
  using Step = Cast<D, S, count>;
  Register<typename LaneOf<S>::type> none = {};
  ((to[I] = Step::apply(part_of<typename Step::From, I % num_parts>(
        I / num_parts < SN ? from[I / num_parts] : none, std::make_index_sequence<count>()))),
   ...);
}

// All lanes of some registers as another value type's, as many as both have.
template <typename D, int DN, typename S, int SN>
INLINE void cast_all(const Register<typename LaneOf<S>::type>* from,
                     Register<typename LaneOf<D>::type>* to) {
  using DR = Register<typename LaneOf<D>::type>;
  if constexpr (std::is_same_v<S, BFloat16> && std::is_same_v<D, float>) {
    constexpr auto lanes = std::make_index_sequence<PASSNET_VECTOR_BYTES / 2>();
    if constexpr (DN == 1) {  // of half a register, and nothing else is read
      using Part = Register<uint16_t, PASSNET_VECTOR_BYTES / 2>;
      constexpr auto first = std::make_index_sequence<PASSNET_VECTOR_BYTES / 4>();
      Part part = part_of<Part, 0>(from[0], first);
      to[0] = as<DR>(__builtin_convertvector(part, Register<uint32_t>) << 16);
      return;
    }
    for (int i = 0; i < DN; i++)
      to[i] = i >= 2 * SN ? DR{} : i % 2 ? widened<1>(from[i / 2], lanes)
                                         : widened<0>(from[i / 2], lanes);
  } else if constexpr (std::is_same_v<S, float> && std::is_same_v<D, BFloat16>) {
    constexpr auto lanes = std::make_index_sequence<PASSNET_VECTOR_BYTES / 2>();
    Register<float> none = {};  // the floats are values of bfloat16 already
    for (int i = 0; i < DN; i++)
      to[i] = packed(2 * i < SN ? from[2 * i] : none, 2 * i + 1 < SN ? from[2 * i + 1] : none,
                     lanes);
  } else if constexpr (sizeof(D) == sizeof(S)) {
    constexpr int count = PASSNET_VECTOR_BYTES / sizeof(D);
    for (int i = 0; i < DN; i++) to[i] = i < SN ? Cast<D, S, count>::apply(from[i]) : DR{};
  } else if constexpr (sizeof(D) > sizeof(S)) {
    cast_wider<D, DN, S, SN>(from, to, std::make_index_sequence<DN>());
  } else {
    constexpr int count = PASSNET_VECTOR_BYTES / sizeof(S), num_parts = sizeof(S) / sizeof(D);
    for (int i = 0; i < DN; i++) {
      typename Cast<D, S, count>::To parts[num_parts];
      for (int j = 0; j < num_parts; j++) {
        int place = i * num_parts + j;
        parts[j] = place < SN ? Cast<D, S, count>::apply(from[place])
                              : typename Cast<D, S, count>::To{};
      }
      to[i] = all_joined<DR>(parts);
    }
  }
}

#if PASSNET_VECTOR_BYTES == 64 && defined(__AVX512BW__)
#define PASSNET_MASKED 1
// Instructions for some lanes of a register, which a bit each names: of 1, 2, or 4 bytes, and two
// bits for a lane of 8.
template <typename L>
constexpr int unit = sizeof(L) < 4 ? sizeof(L) : 4;

template <typename L>
INLINE uint64_t first_bits(int64_t count) {
  return (uint64_t(1) << count * (sizeof(L) / unit<L>)) - 1;
}

template <typename L>
INLINE uint64_t bits_of(const Register<L>& mask) {
  if constexpr (unit<L> == 1) {
    auto lanes = as<Register<char>>(mask);
    return __builtin_ia32_ptestmb512(lanes, lanes, -1);
  } else if constexpr (unit<L> == 2) {
    auto lanes = as<Register<short>>(mask);
    return __builtin_ia32_ptestmw512(lanes, lanes, -1);
  } else {
    auto lanes = as<Register<int>>(mask);
    return __builtin_ia32_ptestmd512(lanes, lanes, -1);
  }
}

template <typename L>
INLINE Register<L> load_lanes(const void* p, uint64_t bits) {
  if constexpr (unit<L> == 1)
    return as<Register<L>>(__builtin_ia32_loaddquqi512_mask(static_cast<const char*>(p),
                                                            Register<char>{}, bits));
  else if constexpr (unit<L> == 2)
    return as<Register<L>>(__builtin_ia32_loaddquhi512_mask(static_cast<const short*>(p),
                                                            Register<short>{}, bits));
  else
    return as<Register<L>>(__builtin_ia32_loaddqusi512_mask(static_cast<const int*>(p),
                                                            Register<int>{}, bits));
}

template <typename L>
INLINE void store_lanes(const Register<L>& value, void* p, uint64_t bits) {
  if constexpr (unit<L> == 1)
    __builtin_ia32_storedquqi512_mask(static_cast<char*>(p), as<Register<char>>(value), bits);
  else if constexpr (unit<L> == 2)
    __builtin_ia32_storedquhi512_mask(static_cast<short*>(p), as<Register<short>>(value), bits);
  else
    __builtin_ia32_storedqusi512_mask(static_cast<int*>(p), as<Register<int>>(value), bits);
}
#endif

// The first lanes of a register from memory, the rest 0; and to memory, where the rest stays. What
// is written in parts and read as a whole waits for the memory, unlike a masked instruction.
template <typename L>
INLINE Register<L> load_register(const void* p, int64_t count) {
  constexpr int64_t width = PASSNET_VECTOR_BYTES / sizeof(L);
  Register<L> result = {};
  if (count >= width)
    std::memcpy(&result, p, sizeof(result));
  else if (count > 0)
#ifdef PASSNET_MASKED
    result = load_lanes<L>(p, first_bits<L>(count));
#else
    std::memcpy(&result, p, count * sizeof(L));
#endif
  return result;
}

template <typename L>
INLINE void store_register(const Register<L>& value, void* p, int64_t count) {
  constexpr int64_t width = PASSNET_VECTOR_BYTES / sizeof(L);
  if (count >= width)
    std::memcpy(p, &value, sizeof(value));
  else if (count > 0)
#ifdef PASSNET_MASKED
    store_lanes<L>(value, p, first_bits<L>(count));
#else
    std::memcpy(p, &value, count * sizeof(L));
#endif
}

// A register of 0, 1, 2, ...
template <typename L, size_t... I>
INLINE Register<L> numbered(std::index_sequence<I...>) {
  return Register<L>{L(I)...};
}

// The larger or smaller of two; the second one where one is NaN, and where they are equal. The
// compiler does not find the instruction that does this.
template <typename R>
INLINE R larger(const R& a, const R& b) {
#if PASSNET_VECTOR_BYTES == 64 && defined(__AVX512F__)
  if constexpr (std::is_same_v<R, Register<float>>)
    return __builtin_ia32_maxps512_mask(a, b, R{}, -1, 4);
#endif
  return a > b ? a : b;
}
template <typename R>
INLINE R smaller(const R& a, const R& b) {
#if PASSNET_VECTOR_BYTES == 64 && defined(__AVX512F__)
  if constexpr (std::is_same_v<R, Register<float>>)
    return __builtin_ia32_minps512_mask(a, b, R{}, -1, 4);
#endif
  return a < b ? a : b;
}

template <int Step, typename R, size_t... I>
INLINE R exchanged(const R& value, std::index_sequence<I...>) {
  using L = std::decay_t<decltype(value[0])>;
  return __builtin_shuffle(value, Register<int_of<L>>{int_of<L>(I ^ Step)...});
}

// One register from which every lane can be taken, its lanes combined by `f`.
template <typename R, typename F, int Step = PASSNET_VECTOR_BYTES / sizeof(R{}[0]) / 2>
INLINE R combined(R value, const F& f) {
  if constexpr (Step == 0) {
    return value;
  } else {
    constexpr int width = PASSNET_VECTOR_BYTES / sizeof(value[0]);
    R other = exchanged<Step>(value, std::make_index_sequence<width>());
    return combined<R, F, Step / 2>(f(value, other), f);
  }
}

// Whether no bit of a register of whole numbers is set.
template <typename R>
INLINE bool no_bits(const R& value) {
#if PASSNET_VECTOR_BYTES == 64 && defined(__AVX512F__)
  auto words = as<Register<int32_t>>(value);
  return uint16_t(__builtin_ia32_ptestmd512(words, words, -1)) == 0;
#endif
  return combined(value, [](const auto& a, const auto& b) { return a | b; })[0] == 0;
}

// Whether all lanes of what a comparison of floats gives are set.
template <typename R>
INLINE bool all_lanes(const R& mask) {
  return no_bits(~mask);
}

}  // namespace at::vec
