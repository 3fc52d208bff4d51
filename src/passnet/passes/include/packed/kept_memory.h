// Memory of tensors in pages of 2 MiB, kept for others when one is dropped.
//
// The C library may give large blocks back to the OS, and then each page of a result costs a fault at its first
// write, more than a small convolution takes in all. And weights and results in pages of 4 KiB take more
// of them than the processor keeps addresses of.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace passnet {

constexpr size_t HUGE_PAGE = 2 << 20;

// Memory of the OS, and its again once dropped; the C library might keep it.
inline std::shared_ptr<char> huge_pages(size_t num_bytes) {
  size_t size = (num_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  void* all = mmap(nullptr, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  char* from = static_cast<char*>(all);
  size_t before = (HUGE_PAGE - reinterpret_cast<uintptr_t>(from) % HUGE_PAGE) % HUGE_PAGE;
  if (before) munmap(from, before);
  munmap(from + before + size, HUGE_PAGE - before);
  madvise(from + before, size, MADV_HUGEPAGE);
  return {from + before, [size](char* memory) { munmap(memory, size); }};
}

// Parts of chunks of memory, one after another. A chunk is freed with the last of its parts.
class Chunks {
 public:
  explicit Chunks(size_t least) : least_(least) {}

  std::shared_ptr<char> part(size_t num_bytes) {
    size_t needed = (num_bytes + LINE - 1) / LINE * LINE;
    std::lock_guard lock(mutex_);
    auto chunk = current_.lock();
    if (!chunk || used_ + needed > size_) {
      size_ = std::max(least_, needed);
      chunk = huge_pages(size_);
      current_ = chunk, used_ = 0;
    }
    char* from = chunk.get() + used_;
    used_ += needed;
    return {std::move(chunk), from};
  }

 private:
  static constexpr size_t LINE = 64;
  const size_t least_;
  std::mutex mutex_;
  std::weak_ptr<char> current_;
  size_t used_ = 0, size_ = 0;
};

class KeptMemory final : public c10::Allocator {
 public:
  static KeptMemory& of_process() {
    static auto* memory = new KeptMemory;  // tensors may outlive what is destroyed at the end
    return *memory;
  }

  // The block that was dropped last of those that are not twice too large: it is likely to be in a cache.
  c10::DataPtr allocate(size_t num_bytes) override {
    std::unique_ptr<Block> block;
    {
      std::lock_guard lock(mutex_);
      for (size_t i = idle_.size(); !block && i-- > 0;)
        if (idle_[i]->num_bytes >= num_bytes && idle_[i]->num_bytes / 2 <= num_bytes) block = take(i);
    }
    if (!block)
      block.reset(new Block{num_bytes, is_large(num_bytes) ? huge_pages(num_bytes) : chunks_.part(num_bytes)});
    char* data = block->data.get();
    return {data, block.release(), &drop, c10::Device(c10::DeviceType::CPU)};
  }

  void copy_data(void* to, const void* from, size_t num_bytes) const override {
    default_copy_data(to, from, num_bytes);
  }

 private:
  static constexpr size_t MOST_IDLE = size_t{256} << 20;

  // Large blocks have pages of their own, and go first. Others share a chunk, which one of them may hold.
  static bool is_large(size_t num_bytes) { return num_bytes >= HUGE_PAGE; }

  struct Block {
    size_t num_bytes;
    std::shared_ptr<char> data;
  };

  static void drop(void* block) {
    KeptMemory& memory = of_process();
    std::lock_guard lock(memory.mutex_);
    memory.idle_.emplace_back(static_cast<Block*>(block));
    memory.num_idle_ += memory.idle_.back()->num_bytes;
    while (memory.num_idle_ > MOST_IDLE) {
      auto is_first = [](const auto& each) { return is_large(each->num_bytes); };
      auto found = std::find_if(memory.idle_.begin(), memory.idle_.end(), is_first);
      memory.take(found == memory.idle_.end() ? 0 : found - memory.idle_.begin());
    }
  }

  std::unique_ptr<Block> take(size_t index) {
    auto block = std::move(idle_[index]);
    idle_.erase(idle_.begin() + index);
    num_idle_ -= block->num_bytes;
    return block;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> idle_;
  size_t num_idle_ = 0;
  Chunks chunks_{8 << 20};
};

// An uninitialised float32 tensor, of kept memory if it is large.
inline at::Tensor empty_kept(at::IntArrayRef sizes, at::MemoryFormat format) {
  constexpr int64_t LARGE = 1 << 14;  // numbers
  if (c10::multiply_integers(sizes) < LARGE)
    return at::empty(sizes, at::TensorOptions(at::kFloat).memory_format(format));
  constexpr auto keys = c10::DispatchKeySet(c10::DispatchKey::CPU);
  return at::detail::empty_generic(sizes, &KeptMemory::of_process(), keys, at::kFloat, format);
}

// The memory of packed weights, side by side.
inline Chunks& memory_of_weights() {
  static auto* chunks = new Chunks(32 << 20);
  return *chunks;
}

inline at::Tensor bytes_of(Chunks& memory, int64_t num_bytes) {
  auto part = memory.part(static_cast<size_t>(num_bytes));
  return at::from_blob(part.get(), {num_bytes}, [part](void*) {}, at::TensorOptions().dtype(at::kByte));
}

}  // namespace passnet
