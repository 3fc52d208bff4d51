// Counts what torch computes in this process, from now to its end, in all threads and forked children:
// every kernel of a counted op is called through a stub that adds one to a counter and jumps on. No
// mode, guard or callback of torch is involved, so that none switches it off. The counters lie in memory
// that the judge reads.

#include <ATen/core/dispatch/Dispatcher.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>

#ifndef __x86_64__
#error "the stubs are machine code of x86-64"
#endif

namespace {

// Explicit instantiation may name private members.
template <typename Tag, auto Member>
struct Reach {
  friend auto reach(Tag) { return Member; }
};
#define REACHED(TAG, CLASS, MEMBER) \
  struct TAG {                      \
    friend auto reach(TAG);         \
  };                                \
  template struct Reach<TAG, &CLASS::MEMBER>;
REACHED(Operators, c10::Dispatcher, operators_)
REACHED(Table, c10::impl::OperatorEntry, dispatchTable_)
REACHED(Kernels, c10::impl::OperatorEntry, kernels_)
REACHED(Boxed, c10::KernelFunction, boxed_kernel_func_)
REACHED(Unboxed, c10::KernelFunction, unboxed_kernel_func_)
REACHED(SymUnboxed, c10::KernelFunction, sym_unboxed_kernel_func_)
REACHED(BoxedFunction, c10::BoxedKernel, boxed_kernel_func_)

constexpr size_t STUB_BYTES = 32, MAX_STUBS = 1 << 15;
constexpr int64_t NUM_COUNTERS = 8192, NAME_BYTES = 64;

char* stubs;
int64_t num_stubs, num_counted;
uint64_t* counters;

// lock inc qword [rip + counter]; jmp qword [rip + target]
void* stub(void* target, int64_t number) {
  char* code = stubs + num_stubs++ * STUB_BYTES;
  int32_t to_counter = int32_t((char*)(counters + number) - (code + 8)), to_target = 2;
  memcpy(code, "\xf0\x48\xff\x05", 4);
  memcpy(code + 4, &to_counter, 4);
  memcpy(code + 8, "\xff\x25", 2);
  memcpy(code + 10, &to_target, 4);
  memcpy(code + 16, &target, 8);
  return code;
}

// The kernels that compute themselves; those made of other ops are counted by these.
bool computes(c10::DispatchKey key) {
  if (key == c10::DispatchKey::CompositeExplicitAutograd ||
      key == c10::DispatchKey::CompositeExplicitAutogradNonFunctional)
    return true;
  if (key == c10::DispatchKey::MkldnnCPU) return true;
  auto part = c10::toFunctionalityKey(key);
  return key <= c10::DispatchKey::EndOfRuntimeBackendKeys && c10::isPerBackendFunctionalityKey(part) &&
         part != c10::DispatchKey::AutogradFunctionality && c10::toBackendComponent(key) != c10::BackendComponent::MetaBit;
}

struct Stubs {
  std::unordered_map<void*, void*> made;
  int64_t number;

  void put(void*& function, bool is_new) {
    auto found = made.find(function);
    if (found != made.end())
      function = found->second;
    else if (function && is_new && num_stubs < int64_t(MAX_STUBS))
      function = made[function] = stub(function, number);
  }
  void put(c10::KernelFunction& kernel, bool is_new) {
    if (kernel.isFallthrough()) return;
    void* boxed = (void*)(kernel.*reach(Boxed{}).*reach(BoxedFunction{}));
    put(boxed, is_new);
    (void*&)((kernel.*reach(Boxed{})).*reach(BoxedFunction{})) = boxed;
    put(kernel.*reach(Unboxed{}), is_new);
    put(kernel.*reach(SymUnboxed{}), is_new);
  }
};

}  // namespace

// Counts from now on into the memory of a file: a name for each counter, behind all counters. The names
// of ops, or of whole namespaces, that are not counted are separated by spaces. Returns how many ops
// are counted, or -1.
extern "C" int64_t passnet_count_ops(int fd, const char* left_out) {
  std::unordered_set<std::string> skipped;
  for (const char* word = left_out; *word;) {
    const char* end = strchr(word, ' ');
    skipped.emplace(word, end ? end - word : strlen(word));
    word = end ? end + 1 : word + strlen(word);
  }
  size_t code_bytes = STUB_BYTES * MAX_STUBS, count_bytes = NUM_COUNTERS * (8 + NAME_BYTES);
  char* memory = (char*)mmap(nullptr, code_bytes + count_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  stubs = memory;
  counters = (uint64_t*)(memory + code_bytes);
  if (mmap(counters, count_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) return -1;
  char* names = (char*)(counters + NUM_COUNTERS);
  for (auto& definition : c10::Dispatcher::realSingleton().*reach(Operators{})) {
    auto& op = definition.op;
    const std::string& name = op.operator_name().name;
    if (skipped.count(name) || skipped.count(name.substr(0, name.find("::"))) || num_counted == NUM_COUNTERS) continue;
    Stubs put{{}, num_counted};
    for (auto& [key, kernels] : op.*reach(Kernels{}))
      if (computes(key))
        for (auto& kernel : kernels) put.put(kernel.kernel, true);
    // Not for tensors without values, on which kernels that are made of other ops run while passes are
    // applied. Called there on others, they call ops that are counted.
    auto& table = op.*reach(Table{});
    auto meta = size_t(c10::getDispatchTableIndexForDispatchKey(c10::DispatchKey::Meta));
    for (size_t row = 0; row < table.size(); ++row)
      if (row != meta) put.put(table[row], false);
    if (!put.made.empty()) strncpy(names + num_counted++ * NAME_BYTES, name.c_str(), NAME_BYTES - 1);
  }
  return mprotect(stubs, code_bytes, PROT_READ | PROT_EXEC) ? -1 : num_counted;
}
