// The checks of call_check.py in C++: what a call must be like for an entry to run it. Each condition
// stands there in words, in the same order; `misfits` below are its numbers.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/TensorBase.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cstring>
#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "watched_bytes.h"

extern "C" {
extern PyObject* THPVariableClass;
extern PyObject* ParameterClass;
}

namespace at::autocast {  // of a header that takes the compiler seconds
TORCH_API at::ScalarType get_autocast_dtype(c10::DeviceType device);
}

namespace {

using passnet::Bytes;

enum misfits {
  FITS, MODE, AUTOCAST, NESTING, CONSTANT, KIND, DTYPE, DEVICE, LAYOUT, SHAPE, STRIDES, SAME, ADDRESS,
  GRADIENTS, NET, WEIGHT, VALUES, FROZEN,
};

// Where a tensor of Python holds that of C++: found at load, as its declaration takes the compiler
// eight seconds.
Py_ssize_t tensor_offset = 0;

const at::TensorBase& unpack(PyObject* object) {
  return *reinterpret_cast<const at::TensorBase*>(reinterpret_cast<const char*>(object) +
                                                  tensor_offset);
}

bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(THPVariableClass) ||
         Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(ParameterClass);
}

// Whether code of Python set attributes of a tensor that torch's own tools do not set.
bool has_attributes(PyObject* tensor) {
  PyObject** dict = _PyObject_GetDictPtr(tensor);
  if (!dict || !*dict) return false;
  PyObject *name, *value;
  for (Py_ssize_t position = 0; PyDict_Next(*dict, &position, &name, &value);)
    if (!PyUnicode_Check(name) || PyUnicode_READ_CHAR(name, 0) != '_') return true;
  return false;
}

struct Node {
  char kind;  // l: leaf, T: tuple, L: list, D: dict
  std::vector<Node> children;
  PyObject* keys;
};

struct Leaf {
  PyObject* constant;  // null for a tensor
  caffe2::TypeMeta dtype;
  c10::Device device = c10::kCPU;
  uint64_t keys;
  std::vector<int64_t> sizes, strides;
  bool is_like_last, is_like_last_3d;  // by which convolutions choose the order of their results
  bool needs_gradient;
  int64_t same_as;
  int64_t least, most;  // whole numbers that it may hold
  bool has_filled_rows;  // each along the last axis holds more than zeros
  std::vector<int64_t> varies;  // of each axis the number of its range, or -1; empty if none varies
};

// A size that varies from call to call, and what it is in the call that is looked at.
struct Range {
  int64_t low, high, now;
};

struct Dict {
  const uint64_t* version;
  uint64_t seen;
};

// A list with the items that it held.
struct List {
  PyObject* list;
  std::vector<PyObject*> items;

  bool is_other() const {
    if (static_cast<size_t>(PyList_GET_SIZE(list)) != items.size()) return true;
    for (size_t i = 0; i < items.size(); i++)
      if (PyList_GET_ITEM(list, i) != items[i]) return true;
    return false;
  }
};

// A set with the members that it held, in the order of its table.
struct Set {
  PySetObject* set;
  std::vector<PyObject*> members;

  explicit Set(PyObject* object) : set(reinterpret_cast<PySetObject*>(object)) {
    for_each([this](PyObject* member) { members.push_back(member); return true; });
  }

  template <typename Look>
  void for_each(Look look) const {
    for (Py_ssize_t i = 0, left = set->used; left && i <= set->mask; i++) {
      const setentry& entry = set->table[i];
      if (!entry.key || entry.hash == -1) continue;  // empty, or a member was removed there
      if (!look(entry.key)) return;
      left--;
    }
  }

  bool is_other() const {
    if (static_cast<size_t>(set->used) != members.size()) return true;
    bool is_same = true;
    const PyObject* const* former = members.data();
    for_each([&](PyObject* member) { return is_same = member == *former++; });
    return !is_same;
  }
};

// A container whose items are compared in the order in which a base class of it iterates over them.
struct Iterated {
  PyObject* container;
  getiterfunc iterate;
  std::vector<PyObject*> items;

  bool is_other() const {
    PyObject* iterator = iterate(container);
    if (!iterator) throw std::exception();
    size_t count = 0;
    bool is_other = false;
    while (PyObject* item = is_other ? nullptr : PyIter_Next(iterator)) {
      is_other = count == items.size() || item != items[count++];
      Py_DECREF(item);
    }
    Py_DECREF(iterator);
    if (PyErr_Occurred()) throw std::exception();
    return is_other || count != items.size();
  }
};

// A place of an object for another one, and what it held.
struct Place {
  PyObject* const* place;
  PyObject* value;
};

// A class, whose version changes with each attribute that it or a base of it gets.
struct Class {
  PyTypeObject* type;
  unsigned int version;
};

// A module or another object, whose class may be swapped for another.
struct Typed {
  PyObject* object;
  PyTypeObject* type;
};

struct Weight {
  PyObject* tensor;  // whose TensorImpl may be swapped for another
  bool needs_gradient;
  const void* data;
  caffe2::TypeMeta dtype;
  int64_t offset;
  std::vector<int64_t> sizes, strides;
  uint32_t version;

  c10::TensorImpl* impl() const { return unpack(tensor).unsafeGetTensorImpl(); }
};

const void* data_of(c10::TensorImpl* impl) {
  return impl->has_storage()
      ? impl->unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get()
      : nullptr;
}

#if PY_VERSION_HEX < 0x030D0000
// Return where Python counts the changes of a dict.
const uint64_t* version_of(PyObject* dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
}

int watch_dicts() { return 0; }
#else
#ifdef Py_GIL_DISABLED
#error "without the global interpreter lock, changes of dicts are not counted"
#endif
// From Python 3.13 on dicts have no version, so a watcher counts changes, as torch's guards do
// (torch/csrc/dynamo/guards.cpp, dict_version_watch_callback). Never freed: dicts outlive statics.
auto& changes = *new std::unordered_map<PyObject*, uint64_t>;
int watcher = -1;

int count_change(PyDict_WatchEvent event, PyObject* dict, PyObject*, PyObject*) {
  auto found = changes.find(dict);
  if (found == changes.end()) return 0;
  if (event == PyDict_EVENT_DEALLOCATED)
    changes.erase(found);
  else
    found->second++;
  return 0;
}

// Have a dict of attributes hold its values: writes to those that its object holds are not told to
// watchers. `popitem` moves them.
void move_values_into(PyObject* dict) {
  PyObject* last = PyObject_CallMethod(dict, "popitem", nullptr);
  bool is_back = last && !PyDict_SetItem(dict, PyTuple_GET_ITEM(last, 0), PyTuple_GET_ITEM(last, 1));
  Py_XDECREF(last);
  if (!is_back) throw std::exception();
}

const uint64_t* version_of(PyObject* dict) {
  if (reinterpret_cast<PyDictObject*>(dict)->ma_values && PyDict_GET_SIZE(dict)) move_values_into(dict);
  if (PyDict_Watch(watcher, dict)) throw std::exception();
  return &changes[dict];
}

int watch_dicts() { return (watcher = PyDict_AddWatcher(count_change)) < 0 ? -1 : 0; }
#endif

// What a call gives, held while it is looked at.
struct Given {
  std::vector<PyObject*> leaves;
  ~Given() {
    for (PyObject* leaf : leaves) Py_DECREF(leaf);
  }
};

struct Check {
  Node args, kwargs;
  std::vector<Leaf> leaves;
  std::vector<Range> ranges;
  std::vector<Dict> dicts;
  std::vector<List> lists;
  std::vector<Iterated> iterated;
  std::vector<Set> sets;
  std::vector<Place> places;
  std::vector<Class> classes;
  std::vector<Typed> objects;
  std::vector<Weight> weights;
  std::vector<Bytes> bytes;
  uint64_t num_updates = 0;  // of weights, when they were last looked at
  uint64_t ignored_keys;
  caffe2::TypeMeta default_dtype;
  bool flushes_denormals;
  at::ScalarType autocast_dtype;  // on a CPU, where the net asks for autocast itself
  bool is_frozen;
  double bound;            // of floats in the arguments; negative for none
  int net_misfit = -1;     // of the net as its dicts were when last looked at
  PyObject* held;          // everything of Python that is pointed to from here
  PyObject* is_same;       // of two constants
  PyObject* look_at_net;   // returns a misfit, or -1 for a net that fits and is to be looked at again
  PyObject* look_at_unseen;  // the same of containers whose changes Python does not tell, or None
};

struct CheckObject {
  PyObject_HEAD
  Check* check;
};

Node node_of(PyObject* spec) {
  if (spec == Py_None) return {'l', {}, nullptr};
  Node node{static_cast<char>(PyUnicode_READ_CHAR(PyTuple_GET_ITEM(spec, 0), 0)), {},
            PyTuple_GET_ITEM(spec, 1)};
  PyObject* children = PyTuple_GET_ITEM(spec, 2);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); i++)
    node.children.push_back(node_of(PyTuple_GET_ITEM(children, i)));
  return node;
}

// Adds the leaves of a value, or returns false if it is nested otherwise.
bool flatten(const Node& node, PyObject* value, std::vector<PyObject*>& leaves) {
  size_t count = node.children.size();
  if (node.kind == 'l') {
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value))
      return false;
    leaves.push_back(Py_NewRef(value));
    return true;
  }
  if (node.kind == 'D') {
    if (!PyDict_CheckExact(value) || static_cast<size_t>(PyDict_GET_SIZE(value)) != count)
      return false;
    PyObject *key, *item;
    Py_ssize_t position = 0;
    for (size_t i = 0; PyDict_Next(value, &position, &key, &item); i++) {
      PyObject* expected = PyTuple_GET_ITEM(node.keys, i);
      int is_equal = key == expected ? 1 : PyObject_RichCompareBool(key, expected, Py_EQ);
      if (is_equal < 0) throw std::exception();
      if (!is_equal || !flatten(node.children[i], item, leaves)) return false;
    }
    return true;
  }
  if (node.kind == 'T' ? !PyTuple_CheckExact(value) : !PyList_CheckExact(value)) return false;
  if (static_cast<size_t>(PySequence_Fast_GET_SIZE(value)) != count) return false;
  for (size_t i = 0; i < count; i++)
    if (!flatten(node.children[i], PySequence_Fast_GET_ITEM(value, i), leaves)) return false;
  return true;
}

int misfit_of_sizes(std::vector<Range>& ranges, const Leaf& leaf, const c10::TensorImpl* impl) {
  auto sizes = impl->sizes();
  if (sizes.size() != leaf.sizes.size()) return SHAPE;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (leaf.varies[i] < 0) {
      if (sizes[i] != leaf.sizes[i]) return SHAPE;
      continue;
    }
    Range& range = ranges[leaf.varies[i]];
    if (sizes[i] < range.low || sizes[i] > range.high) return SHAPE;
    if (range.now >= 0 && range.now != sizes[i]) return SHAPE;
    range.now = sizes[i];
  }
  return impl->is_contiguous() ? FITS : STRIDES;
}

int misfit_of_leaf(Check& check, const Leaf& leaf, PyObject* value,
                   const std::vector<PyObject*>& given, size_t index) {
  if (leaf.constant) {
    if (value == leaf.constant) return FITS;
    PyObject* result =
        PyObject_CallFunctionObjArgs(check.is_same, leaf.constant, value, nullptr);
    if (!result) throw std::exception();
    bool is_same = result == Py_True;
    Py_DECREF(result);
    return is_same ? FITS : CONSTANT;
  }
  if (!is_tensor(value) || has_attributes(value)) return KIND;
  c10::TensorImpl* impl = unpack(value).unsafeGetTensorImpl();
  if (impl->dtype() != leaf.dtype) return DTYPE;
  if (impl->device() != leaf.device) return DEVICE;
  if ((impl->key_set().raw_repr() & ~check.ignored_keys) != leaf.keys) return LAYOUT;
  if (!leaf.varies.empty()) {
    if (int found = misfit_of_sizes(check.ranges, leaf, impl)) return found;
  } else {
    auto sizes = impl->sizes();
    if (sizes != c10::IntArrayRef(leaf.sizes)) return SHAPE;
    auto strides = impl->strides();
    for (size_t i = 0; i < sizes.size(); i++)
      if (sizes[i] > 1 && strides[i] != leaf.strides[i]) return STRIDES;
  }
  if (impl->is_strides_like_channels_last() != leaf.is_like_last ||
      impl->is_strides_like_channels_last_3d() != leaf.is_like_last_3d)
    return STRIDES;
  int64_t same_as = index;
  for (size_t i = 0; i < index; i++)
    if (given[i] == value) {
      same_as = i;
      break;
    }
  if (same_as != leaf.same_as) return SAME;
  if (!leaf.device.is_cpu() &&
      (reinterpret_cast<uintptr_t>(data_of(impl)) + impl->storage_offset() * impl->itemsize()) % 16)
    return ADDRESS;
  return FITS;
}

bool flushes_denormals() {
#ifdef __SSE2__
  return _mm_getcsr() & 0x8040;  // flush to zero, and denormals are zeros
#else
  return false;
#endif
}

int misfit_of_thread(const Check& check) {
  auto keys = c10::impl::tls_local_dispatch_key_set();
  if (!(keys.included_ - c10::default_included_set).empty() ||
      at::impl::PythonTorchFunctionTLS::stack_len() ||
      c10::get_default_dtype() != check.default_dtype ||
      flushes_denormals() != check.flushes_denormals)
    return MODE;
  if (!(c10::autocast_dispatch_keyset - keys.excluded_).empty() ||
      at::autocast::get_autocast_dtype(c10::kCPU) != check.autocast_dtype)
    return AUTOCAST;
  return FITS;
}

int misfit_of_gradients(const Check& check, const std::vector<PyObject*>& given) {
  if (c10::GradMode::is_enabled()) return GRADIENTS;
  for (size_t i = 0; i < given.size(); i++) {
    if (check.leaves[i].constant) continue;
    const at::TensorBase& tensor = unpack(given[i]);
    c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (impl->requires_grad() != check.leaves[i].needs_gradient) return GRADIENTS;
    if (impl->autograd_meta() &&
        reinterpret_cast<const at::TensorBase&>(impl->_fw_grad(0, tensor)).defined())
      return GRADIENTS;
  }
  for (const Weight& weight : check.weights)
    if (weight.impl()->requires_grad() != weight.needs_gradient) return GRADIENTS;
  return FITS;
}

int look_by(PyObject* look) {
  PyObject* result = PyObject_CallNoArgs(look);
  if (!result) throw std::exception();
  int found = static_cast<int>(PyLong_AsLong(result));
  Py_DECREF(result);
  return found;
}

int misfit_of_net(Check& check) {
  bool is_as_seen = check.net_misfit >= 0;
  for (Dict& dict : check.dicts) {
    is_as_seen &= *dict.version == dict.seen;
    dict.seen = *dict.version;
  }
  for (const List& list : check.lists) is_as_seen &= !list.is_other();
  for (const Iterated& each : check.iterated) is_as_seen &= !each.is_other();
  for (const Set& set : check.sets) is_as_seen &= !set.is_other();
  for (const Place& seen : check.places) is_as_seen &= *seen.place == seen.value;
  for (const Typed& seen : check.objects) is_as_seen &= Py_TYPE(seen.object) == seen.type;
  for (Class& seen : check.classes) {
    if (!seen.type->tp_version_tag) {  // it gets one when an attribute is looked up
      PyObject* forward = PyObject_GetAttrString(reinterpret_cast<PyObject*>(seen.type), "__init__");
      if (!forward) throw std::exception();
      Py_DECREF(forward);
    }
    unsigned int version = seen.type->tp_version_tag;
    is_as_seen &= version && version == seen.version;
    seen.version = version;
  }
  if (!is_as_seen) {
    check.net_misfit = -1;  // should looking fail
    check.net_misfit = look_by(check.look_at_net);
  }
  if (check.net_misfit > 0 || check.look_at_unseen == Py_None) return std::max(check.net_misfit, 0);
  return std::max(look_by(check.look_at_unseen), 0);
}

int misfit_of_weights(const Check& check) {
  for (const Weight& weight : check.weights) {
    c10::TensorImpl* impl = weight.impl();
    if (data_of(impl) != weight.data || impl->dtype() != weight.dtype ||
        impl->storage_offset() != weight.offset ||
        impl->sizes() != c10::IntArrayRef(weight.sizes) ||
        impl->strides() != c10::IntArrayRef(weight.strides))
      return WEIGHT;
  }
  return FITS;
}

// Whether all numbers are of a magnitude of at most the bound: positive ones are in the order of
// their bits, infinities and NaN above all others.
template <typename Bits>
bool is_within(const void* data, int64_t count, Bits bound) {
  const Bits* bits = static_cast<const Bits*>(data);
  constexpr Bits magnitude = static_cast<Bits>(~Bits{0}) >> 1;
  constexpr int64_t chunk = 4096;
  for (int64_t start = 0; start < count; start += chunk) {
    int64_t end = std::min(count, start + chunk);
    bool is_beyond = false;
    for (int64_t i = start; i < end; i++) is_beyond |= (bits[i] & magnitude) > bound;
    if (is_beyond) return false;
  }
  return true;
}

bool is_within_bound(double bound, c10::TensorImpl* impl) {
  const void* data = static_cast<const char*>(data_of(impl)) +
                     impl->storage_offset() * static_cast<int64_t>(impl->itemsize());
  int64_t count = impl->numel();
  switch (impl->dtype().toScalarType()) {
    case c10::kFloat:
      return is_within(data, count, std::bit_cast<uint32_t>(static_cast<float>(std::min<double>(bound, FLT_MAX))));
    case c10::kDouble:
      return is_within(data, count, std::bit_cast<uint64_t>(bound));
    case c10::kHalf:
      return is_within(data, count, c10::Half(static_cast<float>(std::min(bound, 65504.0))).x);
    case c10::kBFloat16:
      return is_within(data, count, c10::BFloat16(static_cast<float>(std::min(bound, 3.3895313892515355e38))).x);
    default:
      return true;  // not of floats: others are refused when the check is made
  }
}

template <typename Whole>
bool is_between(const void* data, int64_t count, int64_t least, int64_t most) {
  const Whole* numbers = static_cast<const Whole*>(data);
  uint64_t span = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
  bool is_beyond = false;
  for (int64_t i = 0; i < count; i++)
    is_beyond |= static_cast<uint64_t>(static_cast<int64_t>(numbers[i])) - static_cast<uint64_t>(least) > span;
  return !is_beyond;
}

bool is_between_bounds(const Leaf& leaf, c10::TensorImpl* impl) {
  if (leaf.least == INT64_MIN && leaf.most == INT64_MAX) return true;
  const void* data = static_cast<const char*>(data_of(impl)) +
                     impl->storage_offset() * static_cast<int64_t>(impl->itemsize());
  auto are_between = [&]<typename Whole>() {
    return is_between<Whole>(data, impl->numel(), leaf.least, leaf.most);
  };
  switch (impl->dtype().toScalarType()) {
    case c10::kBool:
    case c10::kByte: return are_between.operator()<uint8_t>();
    case c10::kChar: return are_between.operator()<int8_t>();
    case c10::kShort: return are_between.operator()<int16_t>();
    case c10::kInt: return are_between.operator()<int32_t>();
    default: return are_between.operator()<int64_t>();
  }
}

// Whether every row along the last axis has a byte that is not zero; rows follow each other.
bool are_rows_filled(const c10::TensorImpl* impl) {
  const char* row = static_cast<const char*>(data_of(const_cast<c10::TensorImpl*>(impl))) +
                    impl->storage_offset() * static_cast<int64_t>(impl->itemsize());
  auto sizes = impl->sizes();
  if (sizes.empty() || !impl->is_contiguous()) return false;
  int64_t length = sizes.back() * static_cast<int64_t>(impl->itemsize());
  if (!length) return !impl->numel();
  for (int64_t left = impl->numel() / sizes.back(); left; left--, row += length)
    if (std::all_of(row, row + length, [](char byte) { return !byte; })) return false;
  return true;
}

// How often torch counted an update of a weight.
uint64_t num_updates(const std::vector<Weight>& weights) {
  uint64_t updates = 0;
  for (const Weight& weight : weights) updates += weight.impl()->version_counter().current_version();
  return updates;
}

int misfit_of_values(Check& check, const std::vector<PyObject*>& given) {
  for (size_t i = 0; i < given.size(); i++)
    if (!check.leaves[i].constant &&
        !is_between_bounds(check.leaves[i], unpack(given[i]).unsafeGetTensorImpl()))
      return VALUES;
  for (size_t i = 0; i < given.size(); i++)
    if (!check.leaves[i].constant && check.leaves[i].has_filled_rows &&
        !are_rows_filled(unpack(given[i]).unsafeGetTensorImpl()))
      return VALUES;
  if (check.bound >= 0)
    for (size_t i = 0; i < given.size(); i++)
      if (!check.leaves[i].constant &&
          !is_within_bound(check.bound, unpack(given[i]).unsafeGetTensorImpl()))
        return VALUES;
  if (check.is_frozen)
    for (const Weight& weight : check.weights)
      if (weight.impl()->version_counter().current_version() != weight.version) return FROZEN;
  if (!check.bytes.empty()) {
    passnet::Watch::of_process().after_fork();
    uint64_t updates = num_updates(check.weights);
    if (updates != check.num_updates)  // a copy that a card makes later may pass the kernel by
      for (Bytes& bytes : check.bytes) bytes.is_to_sum = true;
    check.num_updates = updates;
  }
  for (Bytes& bytes : check.bytes)
    if (bytes.are_other()) {
      std::swap(bytes, check.bytes.front());  // the next call finds it at once
      return FROZEN;
    }
  return FITS;
}

int misfit(Check& check, PyObject* args, PyObject* kwargs, std::vector<PyObject*>& given) {
  if (int found = misfit_of_thread(check)) return found;
  if (!flatten(check.args, args, given) || !flatten(check.kwargs, kwargs, given)) return NESTING;
  for (Range& range : check.ranges) range.now = -1;
  for (size_t i = 0; i < given.size(); i++)
    if (int found = misfit_of_leaf(check, check.leaves[i], given[i], given, i)) return found;
  if (int found = misfit_of_gradients(check, given)) return found;
  if (int found = misfit_of_net(check)) return found;
  if (int found = misfit_of_weights(check)) return found;
  return misfit_of_values(check, given);
}

PyObject* tensors_or_misfit(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "a check takes the arguments and the named arguments");
    return nullptr;
  }
  Check& check = *reinterpret_cast<CheckObject*>(self)->check;
  try {
    Given given;
    given.leaves.reserve(check.leaves.size());
    int found = misfit(check, arguments[0], arguments[1], given.leaves);
    if (found) return PyLong_FromLong(found);
    PyObject* tensors = PyList_New(0);
    for (size_t i = 0; tensors && i < check.leaves.size(); i++)
      if (!check.leaves[i].constant && PyList_Append(tensors, given.leaves[i])) Py_CLEAR(tensors);
    return tensors;
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

// Of how many bytes of weights the kernel tells whether they were written.
PyObject* num_watched_bytes(PyObject* self, PyObject*) {
  size_t count = 0;
  for (const Bytes& bytes : reinterpret_cast<CheckObject*>(self)->check->bytes)
    if (bytes.region && bytes.region->is_watched) count += bytes.count;
  return PyLong_FromSize_t(count);
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Check* check = reinterpret_cast<CheckObject*>(self)->check;
  if (check) Py_XDECREF(check->held);
  delete check;
  PyObject_GC_Del(self);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Check* check = reinterpret_cast<CheckObject*>(self)->check;
  if (check) Py_VISIT(check->held);
  return 0;
}

PyMethodDef methods[] = {
    {"tensors_or_misfit",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensors_or_misfit)),
     METH_FASTCALL, nullptr},
    {"num_watched_bytes", num_watched_bytes, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject check_type = {PyVarObject_HEAD_INIT(nullptr, 0) "passnet_call_check.Check"};

// Find where an object holds another one: a cell its content, a function what it calls, others a slot.
PyObject* const* place_of(PyObject* owner, PyObject* name) {
  if (PyCell_Check(owner)) return &reinterpret_cast<PyCellObject*>(owner)->ob_ref;
  if (PyFunction_Check(owner)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(owner);
    if (PyUnicode_CompareWithASCIIString(name, "__code__") == 0) return &function->func_code;
    if (PyUnicode_CompareWithASCIIString(name, "__defaults__") == 0) return &function->func_defaults;
    return &function->func_kwdefaults;
  }
  PyObject* member = PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(owner)), name);
  if (!member) throw std::exception();
  Py_DECREF(member);  // its class holds it
  if (!Py_IS_TYPE(member, &PyMemberDescr_Type)) {
    PyErr_SetObject(PyExc_TypeError, name);
    throw std::exception();
  }
  Py_ssize_t offset = reinterpret_cast<PyMemberDescrObject*>(member)->d_member->offset;
  return reinterpret_cast<PyObject* const*>(reinterpret_cast<const char*>(owner) + offset);
}

// check(args, kwargs, leaves, dicts, lists, iterated, sets, places, classes, objects, weights, ignored_keys, is_frozen, is_same,
// look_at_net, look_at_unseen, bytes, bound, is_to_watch, ranges); see compiled_check.py
PyObject* make_check(PyObject*, PyObject* held) {
  PyObject *args, *kwargs, *leaves, *dicts, *lists, *iterated, *sets, *places, *classes, *objects, *weights;
  PyObject *is_same, *look_at_net, *look_at_unseen, *bytes, *ranges;
  unsigned long long ignored_keys;
  int is_frozen, is_to_watch;
  double bound;
  if (!PyArg_ParseTuple(held, "OOO!O!O!O!O!O!O!O!O!KpOOOO!dpO!", &args, &kwargs, &PyTuple_Type, &leaves,
                        &PyTuple_Type, &dicts, &PyTuple_Type, &lists, &PyTuple_Type, &iterated,
                        &PyTuple_Type, &sets, &PyTuple_Type, &places, &PyTuple_Type, &classes, &PyTuple_Type, &objects, &PyTuple_Type, &weights, &ignored_keys, &is_frozen,
                        &is_same, &look_at_net, &look_at_unseen, &PyTuple_Type, &bytes, &bound, &is_to_watch, &PyTuple_Type, &ranges))
    return nullptr;
  try {
    auto check = std::make_unique<Check>();
    check->args = node_of(args);
    check->kwargs = node_of(kwargs);
    check->ignored_keys = ignored_keys;
    check->is_frozen = is_frozen;
    check->bound = bound;
    check->default_dtype = c10::get_default_dtype();
    check->flushes_denormals = flushes_denormals();
    check->autocast_dtype = at::autocast::get_autocast_dtype(c10::kCPU);
    check->is_same = is_same;
    check->look_at_net = look_at_net;
    check->look_at_unseen = look_at_unseen;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); i++) {
      PyObject *value, *is_constant, *varies, *has_filled_rows;
      Leaf leaf{};
      long long same_as, least, most;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(leaves, i), "OOL(LL)O!O", &value, &is_constant, &same_as,
                            &least, &most, &PyTuple_Type, &varies, &has_filled_rows))
        return nullptr;
      if (is_constant == Py_True) {
        leaf.constant = value;
      } else {
        c10::TensorImpl* impl = unpack(value).unsafeGetTensorImpl();
        leaf.dtype = impl->dtype();
        leaf.device = impl->device();
        leaf.keys = impl->key_set().raw_repr() & ~ignored_keys;
        leaf.sizes = impl->sizes().vec();
        leaf.strides = impl->strides().vec();
        leaf.is_like_last = impl->is_strides_like_channels_last();
        leaf.is_like_last_3d = impl->is_strides_like_channels_last_3d();
        leaf.needs_gradient = impl->requires_grad();
        leaf.same_as = same_as;
        leaf.least = least;
        leaf.most = most;
        leaf.has_filled_rows = has_filled_rows == Py_True;
        if (PyTuple_GET_SIZE(varies)) leaf.varies.assign(leaf.sizes.size(), -1);
        for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(varies); j++) {
          long long axis, number;
          if (!PyArg_ParseTuple(PyTuple_GET_ITEM(varies, j), "LL", &axis, &number)) return nullptr;
          leaf.varies.at(axis) = number;
        }
      }
      check->leaves.push_back(std::move(leaf));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ranges); i++) {
      long long low, high;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(ranges, i), "LL", &low, &high)) return nullptr;
      check->ranges.push_back({low, high, -1});
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dicts); i++)
      check->dicts.push_back({version_of(PyTuple_GET_ITEM(dicts, i)), 0});
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(lists); i++) {
      PyObject *list, *items;  // of a pair, which `held` keeps alive
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(lists, i), "O!O!", &PyList_Type, &list, &PyTuple_Type, &items))
        return nullptr;
      List watched{list, {}};
      for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(items); j++)
        watched.items.push_back(PyTuple_GET_ITEM(items, j));
      check->lists.push_back(std::move(watched));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); i++)
      check->classes.push_back({reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(classes, i)), 0});
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(iterated); i++) {
      PyObject *container, *type, *items;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(iterated, i), "OO!O!", &container, &PyType_Type, &type, &PyTuple_Type, &items))
        return nullptr;
      Iterated watched{container, reinterpret_cast<PyTypeObject*>(type)->tp_iter, {}};
      for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(items); j++)
        watched.items.push_back(PyTuple_GET_ITEM(items, j));
      check->iterated.push_back(std::move(watched));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sets); i++)
      check->sets.emplace_back(PyTuple_GET_ITEM(sets, i));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++) {
      PyObject *owner, *name;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(places, i), "OO", &owner, &name)) return nullptr;
      PyObject* const* place = place_of(owner, name);
      check->places.push_back({place, *place});
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(objects); i++) {
      PyObject* object = PyTuple_GET_ITEM(objects, i);
      check->objects.push_back({object, Py_TYPE(object)});
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(weights); i++) {
      PyObject* tensor = PyTuple_GET_ITEM(weights, i);
      c10::TensorImpl* impl = unpack(tensor).unsafeGetTensorImpl();
      check->weights.push_back({tensor, impl->requires_grad(), data_of(impl), impl->dtype(), impl->storage_offset(),
                                impl->sizes().vec(), impl->strides().vec(),
                                is_frozen ? impl->version_counter().current_version() : 0});
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bytes); i++) {
      c10::TensorImpl* impl = unpack(PyTuple_GET_ITEM(bytes, i)).unsafeGetTensorImpl();
      passnet::add_parts(static_cast<const char*>(data_of(impl)), impl->numel(), is_to_watch, check->bytes);
    }
    if (!check->bytes.empty()) check->num_updates = num_updates(check->weights);
    check->held = Py_NewRef(held);
    auto* self = PyObject_GC_New(CheckObject, &check_type);
    if (!self) {
      Py_DECREF(held);
      return nullptr;
    }
    self->check = check.release();
    PyObject_GC_Track(self);
    return reinterpret_cast<PyObject*>(self);
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

// Find where tensors of Python hold those of C++, by a tensor and the address of its own.
PyObject* locate(PyObject*, PyObject* arguments) {
  PyObject* tensor;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "OK", &tensor, &address)) return nullptr;
  for (Py_ssize_t offset = sizeof(PyObject); offset <= 32; offset += sizeof(void*))
    if (*reinterpret_cast<uintptr_t*>(reinterpret_cast<char*>(tensor) + offset) == address) {
      tensor_offset = offset;
      return PyBool_FromLong(1);
    }
  return PyBool_FromLong(0);
}

PyMethodDef functions[] = {{"make_check", make_check, METH_VARARGS, nullptr},
                           {"locate", locate, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, "passnet_call_check", nullptr, -1, functions};

}  // namespace

PyMODINIT_FUNC PyInit_passnet_call_check() {
  check_type.tp_basicsize = sizeof(CheckObject);
  check_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  check_type.tp_dealloc = destroy;
  check_type.tp_traverse = traverse;
  check_type.tp_methods = methods;
  if (PyType_Ready(&check_type) < 0 || watch_dicts() < 0) return nullptr;
  return PyModule_Create(&module_definition);
}
