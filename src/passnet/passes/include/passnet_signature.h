// What a kernel takes, as the compiler knows it, in letters that Python reads: cpp.py appends
// PASSNET_SIGNATURE(name) to a source, and calls passnet_signature_of_<name>.
#pragma once
#include <type_traits>

namespace passnet_signature {

// The letter of a type that has one of its own, such as bf16; ! where there is none.
template <typename T, typename = void>
struct Own {
  static constexpr char letter = '!';
};
template <typename T>
struct Own<T, std::void_t<decltype(T::passnet_letter)>> {
  static constexpr char letter = T::passnet_letter;
};

// Letters as in Python's struct module; g is bfloat16, v is void.
template <typename T>
constexpr char element() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_void_v<U>) return 'v';
  else if constexpr (std::is_same_v<U, bool>) return '?';
  else if constexpr (std::is_same_v<U, char>) return 'c';
  else if constexpr (std::is_same_v<U, float>) return 'f';
  else if constexpr (std::is_same_v<U, double>) return 'd';
#ifdef __FLT16_MAX__
  else if constexpr (std::is_same_v<U, _Float16>) return 'e';
#endif
  else if constexpr (std::is_integral_v<U>)
    return sizeof(U) > 8 ? '!' : (std::is_signed_v<U> ? "!bh!i!!!l" : "!BH!I!!!L")[sizeof(U)];
  else if constexpr (std::is_class_v<U>) return Own<U>::letter;
  else return '!';
}

template <typename T>
constexpr char letter() {
  return element<std::remove_pointer_t<T>>();
}

// Of a parameter: w for a pointer through which it may write, p for another, n for a number.
template <typename T>
constexpr char kind() {
  using Pointed = std::remove_pointer_t<T>;
  return !std::is_pointer_v<T> ? 'n' : std::is_const_v<Pointed> ? 'p' : 'w';
}

// Part 0: the kind of each parameter. Part 1: the letters of what these are. Part 2: e for
// a function that returns the text of an error or null, v for any other.
template <typename Result, typename... Args>
const char* letters(Result (*)(Args...), int part) {
  static constexpr char kinds[] = {kind<Args>()..., 0};
  static constexpr char elements[] = {letter<Args>()..., 0};
  if (part == 2) return std::is_same_v<Result, const char*> ? "e" : "v";
  return part == 0 ? kinds : elements;
}

}  // namespace passnet_signature

#define PASSNET_SIGNATURE(name)                                       \
  extern "C" const char* passnet_signature_of_##name(int part) {      \
    return passnet_signature::letters(&name, part);                   \
  }
