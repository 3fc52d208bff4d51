// An allocator for torch's tensors on a CPU that puts a page without access on both sides of each, and
// fills what is not its own with one byte. Code that reads or writes a page beyond a tensor, or in one
// that was freed, ends its process by SIGSEGV; so does a byte beside a tensor that was written. Where
// that was is written to standard error first.

#include <c10/core/CPUAllocator.h>

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>

namespace {

struct Block {
  char* pages;  // those with access; one without lies before them, and one behind
  size_t page_bytes;
  char* data;
  size_t num_bytes;
  char fill;
  int argument;  // which argument of the graph it holds, -1 if none
};

enum place { BEFORE, BEHIND, FREED, ELSEWHERE };

// How many freed blocks keep their addresses, and how many bytes of addresses they may hold.
constexpr size_t KEPT_BLOCKS = 256, KEPT_BYTES = size_t(64) << 20;

const size_t PAGE = sysconf(_SC_PAGESIZE);

size_t alignment = 64;
bool is_at_end = true;
char fill = 0;

// Never destroyed: tensors may be freed while the process ends.
std::mutex& mutex = *new std::mutex;
std::map<const char*, Block>& live = *new std::map<const char*, Block>;
std::deque<Block>& freed = *new std::deque<Block>;
size_t freed_bytes = 0;

size_t rounded(size_t number, size_t unit) { return (number + unit - 1) / unit * unit; }

char* start(const Block& block) { return block.pages - PAGE; }

size_t span(const Block& block) { return block.page_bytes + 2 * PAGE; }

void describe(const char* what, place where, size_t distance, const Block* block) {
  char tensor[96] = "", text[256];
  if (block && block->argument >= 0)
    snprintf(tensor, sizeof tensor, "argument %d, which has %zu bytes", block->argument, block->num_bytes);
  else if (block)
    snprintf(tensor, sizeof tensor, "a tensor of %zu bytes that it made", block->num_bytes);
  int length;
  if (where == ELSEWHERE)
    length = snprintf(text, sizeof text, "%s far from every tensor\n", what);
  else if (where == FREED)
    length = snprintf(text, sizeof text, "%s in %s, and was freed before\n", what, tensor);
  else
    length = snprintf(text, sizeof text, "%s %zu bytes %s %s\n", what, distance,
                      where == BEFORE ? "before the beginning of" : "behind the end of", tensor);
  if (write(STDERR_FILENO, text, length) < 0) return;
}

bool lies_in(const Block& block, const char* address) {
  return address >= start(block) && address < start(block) + span(block);
}

void describe_address(const char* what, const char* address) {
  for (const auto& [data, block] : live)
    if (lies_in(block, address)) {
      bool is_before = address < data;
      size_t distance = is_before ? data - address : address - (data + block.num_bytes);
      return describe(what, is_before ? BEFORE : BEHIND, distance, &block);
    }
  for (const Block& block : freed)
    if (lies_in(block, address)) return describe(what, FREED, 0, &block);
  describe(what, ELSEWHERE, 0, nullptr);
}

void on_fault(int, siginfo_t* info, void* context) {
  const char* what = "it read or wrote";
#if defined(__x86_64__)
  if (info->si_code != SI_KERNEL)  // else it is no address at all, and nothing is known of the access
    what = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2 ? "it wrote" : "it read";
#endif
  if (mutex.try_lock()) {
    describe_address(what, static_cast<const char*>(info->si_addr));
    mutex.unlock();
  }
}  // the access is made again, and the signal then ends the process

// The first byte beside a block's tensor that is not as it was filled; null if there is none.
const char* damaged(const Block& block) {
  const char* end = block.data + block.num_bytes;
  for (const char* at = block.pages; at < block.data; at++)
    if (*at != block.fill) return at;
  for (const char* at = end; at < block.pages + block.page_bytes; at++)
    if (*at != block.fill) return at;
  return nullptr;
}

void end_if_damaged(const Block& block) {
  if (const char* at = damaged(block)) {
    describe_address("it wrote", at);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
}

void release(void* data) {
  if (!data) return;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = live.find(static_cast<const char*>(data));
  if (found == live.end()) return;
  Block block = found->second;
  end_if_damaged(block);
  live.erase(found);
  mmap(block.pages, block.page_bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed.push_back(block);
  freed_bytes += span(block);
  while (freed.size() > KEPT_BLOCKS || freed_bytes > KEPT_BYTES) {
    munmap(start(freed.front()), span(freed.front()));
    freed_bytes -= span(freed.front());
    freed.pop_front();
  }
}

struct Fence final : c10::Allocator {
  c10::DataPtr allocate(size_t num_bytes) override {
    c10::Device cpu(c10::DeviceType::CPU);
    if (num_bytes == 0) return {nullptr, nullptr, &release, cpu};
    Block block{nullptr, rounded(num_bytes, PAGE), nullptr, num_bytes, fill, -1};
    void* reserved = num_bytes > SIZE_MAX / 2
                         ? MAP_FAILED
                         : mmap(nullptr, span(block), PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) throw std::bad_alloc();
    block.pages = static_cast<char*>(reserved) + PAGE;
    if (mprotect(block.pages, block.page_bytes, PROT_READ | PROT_WRITE)) {
      munmap(reserved, span(block));
      throw std::bad_alloc();
    }
    block.data = block.pages;
    if (is_at_end) block.data += block.page_bytes - rounded(num_bytes, alignment);
    memset(block.pages, fill, block.page_bytes);
    std::lock_guard<std::mutex> lock(mutex);
    live[block.data] = block;
    return {block.data, block.data, &release, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, size_t count) const override {
    default_copy_data(target, source, count);
  }
};

void install() {
  static Fence& fence = *new Fence;
  static char stack[1 << 16];
  stack_t own{};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  sigaction(SIGSEGV, &action, nullptr);
  c10::SetCPUAllocator(&fence, 100);
}

}  // namespace

// Tensors that are made from now on lie behind or before a page without access, begin at a multiple of
// `unit` bytes, and have bytes of `byte` in and beside them.
extern "C" void passnet_fence_lay_out(int at_end, int unit, int byte) {
  is_at_end = at_end;
  alignment = unit;
  fill = static_cast<char>(byte);
  static bool is_installed = (install(), true);
  (void)is_installed;
}

// What lies there holds an argument of the graph.
extern "C" void passnet_fence_name(void* data, int argument) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = live.find(static_cast<const char*>(data));
  if (found != live.end()) found->second.argument = argument;
}

// Ends the process if something was written beside a tensor.
extern "C" void passnet_fence_check() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [data, block] : live) end_if_damaged(block);
}
