// Memory of tensors in pages of 2 MiB, kept for others when one is dropped.
//
// The C library may give large blocks back to the OS, and then each page of a result costs a fault at its first
// write, more than a small convolution takes in all. And weights and results in pages of 4 KiB take more
// of them than the processor keeps addresses of.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace passnet {

// Parts of chunks of memory, one after another. A chunk is freed with the last of its parts.
class Chunks {
 public:
  explicit Chunks(size_t least) : least_(least) {}

  std::shared_ptr<char> part(size_t num_bytes) {
    size_t needed = (num_bytes + LINE - 1) / LINE * LINE;
    std::lock_guard lock(mutex_);
    auto chunk = current_.lock();
    if (!chunk || used_ + needed > size_) {
      size_ = std::max(least_, (needed + PAGE - 1) / PAGE * PAGE);
      void* memory = std::aligned_alloc(PAGE, size_);
      if (!memory) throw std::bad_alloc();
      madvise(memory, size_, MADV_HUGEPAGE);
      chunk = std::shared_ptr<char>(static_cast<char*>(memory), std::free);
      current_ = chunk, used_ = 0;
    }
    char* from = chunk.get() + used_;
    used_ += needed;
    return {std::move(chunk), from};
  }

 private:
  static constexpr size_t LINE = 64, PAGE = 2 << 20;
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
        if (idle_[i]->num_bytes >= num_bytes && idle_[i]->num_bytes / 2 <= num_bytes) {
          block = std::move(idle_[i]);
          idle_.erase(idle_.begin() + i);
          num_idle_ -= block->num_bytes;
        }
    }
    if (!block) block.reset(new Block{num_bytes, chunks_.part(num_bytes)});
    char* data = block->data.get();
    return {data, block.release(), &drop, c10::Device(c10::DeviceType::CPU)};
  }

  void copy_data(void* to, const void* from, size_t num_bytes) const override {
    default_copy_data(to, from, num_bytes);
  }

 private:
  static constexpr size_t MOST_IDLE = size_t{256} << 20;

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
      memory.num_idle_ -= memory.idle_.front()->num_bytes;
      memory.idle_.erase(memory.idle_.begin());
    }
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

// Bytes for packed weights, side by side.
inline at::Tensor bytes_in_huge_pages(int64_t num_bytes) {
  static auto* chunks = new Chunks(32 << 20);
  auto part = chunks->part(static_cast<size_t>(num_bytes));
  return at::from_blob(part.get(), {num_bytes}, [part](void*) {}, at::TensorOptions().dtype(at::kByte));
}

}  // namespace passnet
