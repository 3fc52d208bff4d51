// Bytes that must stay as they were when something was made of them: watched where the kernel does
// so, and else summed at each look.

#include <array>
#include <cstring>

#include "memory_watch.h"

namespace passnet {

// Sums of the 64-bit words of a storage, in lanes of which each word is in one: of the words
// themselves, so that no change within one word is missed, and of products of their halves, mixed
// with a key of their place, so that words that trade places are told from each other.
struct Sums {
  std::array<uint64_t, 16> plain{}, mixed{};
  bool operator==(const Sums&) const = default;
};

inline Sums sums_of(const void* storage, size_t count) {
  constexpr uint64_t first = 0x9E3779B97F4A7C15, step = 0xD1B54A32D192ED03;  // odd, random bits
  constexpr size_t lanes = 16, stripe = lanes * sizeof(uint64_t), ahead = 2048;
  const char* data = static_cast<const char*>(storage);
  Sums sums;
  uint64_t key[lanes], words[lanes];
  for (size_t lane = 0; lane < lanes; lane++) key[lane] = first * (lane + 1);
  auto add = [&] {
    for (size_t lane = 0; lane < lanes; lane++) {
      uint64_t word = words[lane] ^ key[lane];
      sums.plain[lane] += words[lane];
      sums.mixed[lane] += (word & 0xFFFFFFFF) * (word >> 32);
      key[lane] += step;
    }
  };
  size_t place = 0;
  for (; place + stripe <= count; place += stripe) {
    __builtin_prefetch(data + place + ahead);
    __builtin_prefetch(data + place + ahead + stripe / 2);
    std::memcpy(words, data + place, stripe);
    add();
  }
  if (place < count) {
    std::memset(words, 0, stripe);
    std::memcpy(words, data + place, count - place);
    add();
  }
  return sums;
}

// A part of a storage, and what its bytes came to when the values of weights were folded in. Where
// the kernel watches its pages, they are summed only after one of them was written.
struct Bytes {
  const char* data;
  size_t count;
  Sums sums;
  std::shared_ptr<Region> region;
  uint64_t num_writes;     // of the region, when the bytes were last summed
  bool is_to_sum = false;  // whatever the region says

  bool are_other() {
    uint64_t now;
    if (region && Watch::of_process().num_writes(*region, now)) {
      if (now == num_writes && !is_to_sum) return false;
      num_writes = now;
    }
    is_to_sum = sums_of(data, count) != sums;
    return is_to_sum;
  }
};

// Summing fewer bytes takes no longer than the kernel takes to answer: 1 us.
constexpr size_t WATCHED_FROM = 16384;

// The parts of a storage: the pages that are its alone, watched where they can be, and its ends.
inline void add_parts(const char* data, size_t count, bool is_to_watch, std::vector<Bytes>& parts) {
  auto add = [&](const char* from, const char* to, std::shared_ptr<Region> region) {
    size_t length = to - from;
    if (!length) return;
    uint64_t writes = region ? region->num_writes : 0;  // from now on, so that they count
    parts.push_back({from, length, sums_of(from, length), std::move(region), writes});
  };
  const char* end = data + count;
  uintptr_t address = reinterpret_cast<uintptr_t>(data);
  uintptr_t first = (address + PAGE - 1) / PAGE * PAGE;
  uintptr_t last = (address + count) / PAGE * PAGE;
  std::shared_ptr<Region> region;
  if (is_to_watch && first < last && last - first >= WATCHED_FROM)
    region = Watch::of_process().region(first, last);
  if (!region) return add(data, end, nullptr);
  const char* middle = data + (first - address);
  const char* rest = data + (last - address);
  add(data, middle, nullptr);
  add(middle, rest, region);
  add(rest, end, nullptr);
}

}  // namespace passnet
