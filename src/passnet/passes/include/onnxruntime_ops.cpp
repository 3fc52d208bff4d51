// Kernels as custom ops of ONNX Runtime, by the parts of its C interface that this needs.
//
// The interface is a table of functions to which releases append, and an op is a struct that
// states its version, here 16. Places and members were read from version 29 of
// `onnxruntime_c_api.h`; ONNX Runtime 1.32 was run.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace {
enum Function {
  create_status = 0,
  create_domain = 26,
  add_op = 27,
  add_domain = 28,
  get_data = 51,
  count_elements = 64,
  get_shape = 65,
  get_input = 90,
  get_output = 91,
  release_shape = 99,
};
using Status = void;  // null where all is well
void* const* api;

template <typename R = Status*, typename... T>
R ort(Function place, T... values) {
  return ((R(*)(T...))api[place])(values...);
}

Status* failed(const std::string& text) { return ort(create_status, 1, text.c_str()); }

struct Kernel {
  const char *op, *library, *name, *kinds;
  const char* (*call)(void*, void**);
  size_t num_inputs, num_outputs;
  int inputs[64], outputs[64];
  void* function = nullptr;
};

CALLS

Kernel kernels[] = {
ROWS
};

struct Op {
  uint32_t version = 16;
  void* (*create_1)() = nullptr;
  const char* (*name)(const Op*) = [](const Op* op) { return op->kernel->op; };
  const char* (*provider)(const Op*) = [](const Op*) { return (const char*)nullptr; };
  int (*input)(const Op*, size_t) = [](const Op* op, size_t i) { return op->kernel->inputs[i]; };
  size_t (*num_inputs)(const Op*) = [](const Op* op) { return op->kernel->num_inputs; };
  int (*output)(const Op*, size_t) = [](const Op* op, size_t i) { return op->kernel->outputs[i]; };
  size_t (*num_outputs)(const Op*) = [](const Op* op) { return op->kernel->num_outputs; };
  void (*compute_1)() = nullptr;
  void (*destroy)(void*) = [](void*) {};
  int (*input_kind)(const Op*, size_t) = [](const Op*, size_t) { return 0; };   // required
  int (*output_kind)(const Op*, size_t) = [](const Op*, size_t) { return 0; };  // required
  int (*memory)(const Op*, size_t) = [](const Op*, size_t) { return 0; };       // the processor's
  void (*of_variadic_ops[4])() = {};
  Status* (*create)(const Op*, const void*, const void*, void**) =
      [](const Op* op, const void*, const void*, void** made) {
        *made = op->kernel;
        return (Status*)nullptr;
      };
  Status* (*compute)(void*, void*) = nullptr;
  Kernel* kernel = nullptr;  // ours
};

Status* compute(void* made, void* context) {
  const Kernel& kernel = *(Kernel*)made;
  void* data[64];
  size_t filled = 0;
  for (size_t i = 0; i < kernel.num_inputs; i++) {
    void *value, *shape;
    if (Status* bad = ort(get_input, context, i, &value)) return bad;
    if (Status* bad = ort(get_data, value, data + i)) return bad;
    if (kernel.kinds[i] != 'w') continue;
    size_t rank;
    if (Status* bad = ort(get_shape, value, &shape)) return bad;
    Status* bad = ort(count_elements, shape, &rank);
    ort<void>(release_shape, shape);
    if (bad) return bad;
    bad = ort(get_output, context, filled++, (const int64_t*)data[i], rank, &value);
    if (bad) return bad;
    if (Status* bad = ort(get_data, value, data + i)) return bad;
  }
  const char* error = kernel.call(kernel.function, data);
  return error ? failed(std::string("kernel ") + kernel.name + ": " + error) : nullptr;
}

Status* load(Kernel& kernel) {
  Dl_info own;
  dladdr((void*)&load, &own);
  std::string path = own.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + kernel.library;
  void* library = dlopen(path.c_str(), RTLD_NOW);
  kernel.function = library ? dlsym(library, kernel.name) : nullptr;
  return kernel.function ? nullptr : failed(path + " is missing or damaged");
}

constexpr size_t num_kernels = sizeof kernels / sizeof *kernels;
Op ops[num_kernels];
void* domain;
}  // namespace

extern "C" Status* RegisterCustomOps(void* options, void* const* base) {
  api = ((void* const* (*)(uint32_t))base[0])(16);
  for (size_t i = 0; !domain && i < num_kernels; i++) {
    if (Status* bad = load(kernels[i])) return bad;
    ops[i].compute = compute;
    ops[i].kernel = kernels + i;
  }
  if (!domain) {
    if (Status* bad = ort(create_domain, "passnet", &domain)) return bad;
    for (Op& op : ops)
      if (Status* bad = ort(add_op, domain, &op)) return bad;
  }
  return ort(add_domain, options, domain);
}
