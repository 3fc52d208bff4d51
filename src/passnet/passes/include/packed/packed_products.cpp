// Products and convolutions by weights that are packed once and watched: the op of packed_products.py.
//
// At the first call the weights are put into the layouts of oneDNN, MKL or ours, with the scales of a batch
// norm folded in, and what is fastest of several ways is kept. A later call looks whether the weights
// were written since (memory_watch.h), and packs them anew if so.

#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <tuple>
#include <unordered_map>

#include "packed/attention_of_parts.h"
#include "packed/fastest_way.h"
#include "packed/recurrent.h"
#include "watched_bytes.h"

namespace {

using namespace passnet::packed;
namespace low_bit = passnet::low_bit;

// The weights of a call, as they were packed.
struct Site {
  explicit Site(const std::string& text) : form(text) {}

  Form form;
  std::mutex mutex;
  std::vector<passnet::Bytes> bytes;
  uint64_t num_updates = 0;
  std::map<int64_t, Packed> by_rows;
  std::map<Way, Packed> by_way;  // of fewer bits
  std::optional<Packed> of_others;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages;

  // For numbers of rows that nothing was chosen for.
  Packed of_any_rows(at::TensorList weights, const Tensor& x) {
    Way way = form.num_dims && !form.is_misread(weights[0]) ? Way::ONEDNN : Way::TORCH;
    if (!of_others) of_others = packed_by(way, form, weights, x);
    return *of_others;
  }

  // A few rows wait for the weights; more of them are computed in bfloat16 where the processor has it.
  Packed in_fewer_bits(at::TensorList weights, const Tensor& x) {
    const bool has_bf16 = multiplies_in_bf16();
    int64_t rows = rows_of(form, x);
    Way way = has_bf16 ? Way::BF16 : Way::TORCH;
    if (rows <= (has_bf16 ? 1 : 4) * low_bit::MOST_ROWS) way = Way::LOW_BIT;
    auto found = by_way.find(way);
    if (found == by_way.end()) found = by_way.emplace(way, packed_by(way, form, weights, x)).first;
    return found->second;
  }

  bool is_dropped() const {
    return std::any_of(storages.begin(), storages.end(), [](const auto& each) { return each.expired(); });
  }
};

constexpr size_t MOST_ROWS = 4;  // MKL packs for one number of rows, and others keep what torch does

uint64_t updates_of(at::TensorList weights) {
  uint64_t sum = 0;
  for (const Tensor& weight : weights)
    if (!weight.is_inference()) sum += weight._version();
  return sum;
}

void look_at(Site& site, at::TensorList weights) {
  site.bytes.clear();
  site.storages.clear();
  for (const Tensor& weight : weights) {
    if (!site.form.is_frozen)
      passnet::add_parts(static_cast<const char*>(weight.const_data_ptr()), weight.nbytes(), true, site.bytes);
    auto* storage = weight.storage().unsafeGetStorageImpl();
    site.storages.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage));
  }
  site.num_updates = updates_of(weights);
}

bool are_written(Site& site, at::TensorList weights) {
  if (site.form.is_frozen) return false;
  passnet::Watch::of_process().after_fork();
  uint64_t updates = updates_of(weights);
  if (updates != site.num_updates)  // a copy that a card makes later may pass the kernel by
    for (auto& bytes : site.bytes) bytes.is_to_sum = true;
  site.num_updates = updates;
  for (auto& bytes : site.bytes)
    if (bytes.are_other()) return true;
  return false;
}

struct Key {
  std::string form;
  std::vector<int64_t> places;  // addresses, sizes and strides of the weights
  bool operator==(const Key&) const = default;
};

struct Hash {
  size_t operator()(const Key& key) const {
    size_t hash = std::hash<std::string>()(key.form);
    for (int64_t place : key.places) hash = hash * 31 + static_cast<size_t>(place);
    return hash;
  }
};

std::mutex sites_mutex;
std::unordered_map<Key, std::shared_ptr<Site>, Hash> sites;

std::shared_ptr<Site> site_of(at::TensorList weights, c10::string_view form) {
  Key key{std::string(form), {}};
  for (const Tensor& weight : weights) {
    key.places.push_back(reinterpret_cast<int64_t>(weight.const_data_ptr()));
    for (auto numbers : {weight.sizes(), weight.strides()})
      key.places.insert(key.places.end(), numbers.begin(), numbers.end());
  }
  std::lock_guard lock(sites_mutex);
  auto found = sites.find(key);
  if (found != sites.end() && !(found->second->form.is_frozen && found->second->is_dropped())) return found->second;
  std::erase_if(sites, [](const auto& each) { return each.second->is_dropped(); });
  auto site = std::make_shared<Site>(key.form);
  look_at(*site, weights);
  sites.emplace(std::move(key), site);
  return site;
}

Packed packed_of(Site& site, at::TensorList weights, const Tensor& x, const Optional& other) {
  int64_t rows = rows_of(site.form, x);
  std::lock_guard lock(site.mutex);
  if (are_written(site, weights)) {
    look_at(site, weights);  // first, so that what is written from now on is seen
    for (auto& [_, packed] : site.by_rows) packed.weight.reset();
    site.of_others.reset();
    site.by_way.clear();
  }
  if (site.form.bits < 32) return site.in_fewer_bits(weights, x);
  auto found = site.by_rows.find(rows);
  if (found == site.by_rows.end()) {
    if (site.by_rows.size() >= MOST_ROWS) return site.of_any_rows(weights, x);
    return site.by_rows.emplace(rows, fastest(site.form, weights, x, other)).first->second;
  }
  Packed& packed = found->second;
  if (!packed.weight.defined()) packed = packed_by(packed.way, site.form, weights, x);
  return packed;
}

Tensor call_site(Site& site, const Tensor& x, at::TensorList weights, const Optional& other) {
  const Form& form = site.form;
  if (!x.numel()) return by_torch(form, x, weights);
  Tensor y = product(packed_of(site, weights, x, other), form, x, other, weights);
  return form.num_dims ? y.contiguous(form.last()) : y;
}

Tensor call(const Tensor& x, at::TensorList weights, const Optional& other, c10::string_view text) {
  if (x.scalar_type() != at::kFloat) throw std::runtime_error("passnet: packed products are in float32");
  at::AutoDispatchBelowADInplaceOrView guard;
  auto site = site_of(weights, text);
  if (!site->form.is_line) return call_site(*site, x, weights, other);
  std::vector<Tensor> as_images = weights.vec();
  for (size_t part = 0; part < site->form.num_weights(); part++) as_images[part] = as_images[part].unsqueeze(2);
  Tensor y = call_site(*site, x.unsqueeze(2), as_images, other ? Optional(other->unsqueeze(2)) : other);
  return y.permute({0, 2, 3, 1}).reshape({y.size(0), y.size(3), y.size(1)}).mT();  // strides also where a size is 1
}

// A recurrent layer in one direction, over x (steps, batch, inputs): the hidden states of all steps, the last one, and
// the last cell of an LSTM. Weights are those of the input and of the hidden state, then their biases if there are any.
// `text` names the layer, says whether the last step comes first, and ends in what the forms of its products add.
std::tuple<Tensor, Tensor, Tensor> recur(const Tensor& x, at::TensorList weights, const Tensor& hidden,
                                         const Optional& cell, c10::string_view text) {
  std::istringstream words{std::string(text)};
  std::string name, rest;
  bool is_reversed = false;
  words >> name >> is_reversed;
  std::getline(words, rest);
  const auto kind = passnet::recurrent::kind_of(name);
  const bool is_gru = kind == passnet::recurrent::Kind::GRU;
  const int64_t steps = x.size(0), batch = x.size(1), size = hidden.size(-1);
  if (hidden.scalar_type() != at::kFloat || (cell && cell->scalar_type() != at::kFloat))
    throw std::runtime_error("passnet: packed recurrent layers are in float32");
  if (!steps) throw std::runtime_error("passnet: a sequence of no steps");
  at::AutoDispatchBelowADInplaceOrView guard;
  const bool has_bias = weights.size() > 2;
  const std::string form = (has_bias ? "0 1 1 0 0.0 none none 32" : "0 1 0 0 0.0 none none 32") + rest;
  std::vector<Tensor> of_input{weights[0]}, of_hidden{weights[1]};
  if (has_bias) of_input.push_back(weights[2]), of_hidden.push_back(weights[3]);
  Tensor given = call(x, of_input, {}, form).contiguous();  // for all steps at once
  Tensor y = at::empty({steps, batch, size}, x.options()), last = hidden.contiguous();
  Tensor own_cell = cell ? cell->clone(at::MemoryFormat::Contiguous) : at::empty({0}, x.options());
  if (!batch) return {y, last.clone(), own_cell};
  auto site = site_of(of_hidden, steps > 1 ? form + " warm 1" : form);
  const Optional added = is_gru ? Optional() : Optional(given.select(0, 0));
  const Packed packed = packed_of(*site, of_hidden, last, added);
  for (int64_t number = 0; number < steps; number++) {
    int64_t at = is_reversed ? steps - 1 - number : number;
    Tensor own = given.select(0, at), after = y.select(0, at);
    Tensor sums = product(packed, site->form, last, is_gru ? Optional() : Optional(own), of_hidden).contiguous();
    passnet::recurrent::State state{last.const_data_ptr<float>(), after.data_ptr<float>(), own_cell.data_ptr<float>()};
    passnet::recurrent::step(kind, sums.const_data_ptr<float>(), own.const_data_ptr<float>(), state, batch, size);
    last = after;
  }
  return {y, last.clone(), own_cell};
}

constexpr int64_t FEW = 16;  // rows of a query

// Attention to past and new keys, whose heads have rows for each head of the query that shares them: queries
// (batch, heads, shared * new, size), already scaled, and masks (batch or 1, 1, new, all). More rows than a
// few are computed by torch's flash kernel, in bfloat16 where the processor has it.
Tensor attend(const Tensor& query, const Tensor& past_keys, const Tensor& past_values, const Tensor& new_keys,
              const Tensor& new_values, const Optional& mask) {
  auto dense = [](const Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); };
  Tensor q = query.contiguous(), keys[] = {dense(past_keys), dense(new_keys)},
         values[] = {dense(past_values), dense(new_values)};
  int64_t batch = q.size(0), heads = q.size(1), rows = q.size(2), size = q.size(3), width = values[1].size(3);
  int64_t count = keys[0].size(2) + keys[1].size(2), length = keys[1].size(2);
  if (rows > FEW) {  // heads are batches here, and those that share keys are heads
    auto kind = multiplies_in_bf16() ? at::kBFloat16 : at::kFloat;
    auto joined = [&](const Tensor (&parts)[2]) {
      Tensor all = parts[0].size(2) ? at::cat({parts[0], parts[1]}, 2) : parts[1];
      return all.to(kind).contiguous().view({batch * heads, 1, count, -1}).expand({-1, rows / length, -1, -1});
    };
    Optional added;
    if (mask) {
      added = at::zeros(mask->sizes(), q.options().dtype(kind)).masked_fill_(mask->logical_not(), -1e38);
      if (mask->size(0) > 1) added = added->expand({-1, heads, -1, -1}).reshape({batch * heads, 1, length, count});
    }
    Tensor of_heads = q.to(kind).view({batch * heads, rows / length, length, size});
    auto [found, _] =
        at::_scaled_dot_product_flash_attention_for_cpu(of_heads, joined(keys), joined(values), 0.0, false, added, 1.0);
    return found.to(at::kFloat).contiguous().view({batch, heads, rows, width});
  }
  Tensor y = at::empty({batch, heads, rows, width}, q.options()), shown;
  if (mask) shown = mask->expand({batch, 1, length, count}).contiguous();
  at::parallel_for(0, batch * heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scores(count);
    for (int64_t each = begin; each < end; each++) {
      int64_t b = each / heads, h = each % heads;
      auto rows_of_head = [&](const Tensor& x) {
        const float* from = x.const_data_ptr<float>() + b * x.stride(0) + h * x.stride(1);
        return passnet::attention::Rows{from, x.size(2), x.stride(2)};
      };
      passnet::attention::Rows k[] = {rows_of_head(keys[0]), rows_of_head(keys[1])},
                               v[] = {rows_of_head(values[0]), rows_of_head(values[1])};
      for (int64_t row = 0; row < rows; row++) {
        const bool* own = mask ? shown.const_data_ptr<bool>() + (b * length + row % length) * count : nullptr;
        passnet::attention::attend(q.const_data_ptr<float>() + (each * rows + row) * size, k, v, size, width, own,
                                   scores, y.data_ptr<float>() + (each * rows + row) * width);
      }
    }
  });
  return y;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(passnet_packed, library) {
  library.def("product(Tensor x, Tensor[] weights, Tensor? other, str form) -> Tensor",
              {at::Tag::needs_exact_strides});
  library.impl("product", c10::DispatchKey::CPU, TORCH_FN(call));
  library.def("recur(Tensor x, Tensor[] weights, Tensor hidden, Tensor? cell, str form) -> (Tensor, Tensor, Tensor)");
  library.impl("recur", c10::DispatchKey::CPU, TORCH_FN(recur));
  library.def("attend(Tensor query, Tensor past_keys, Tensor past_values, Tensor new_keys, Tensor new_values, "
              "Tensor? mask) -> Tensor");
  library.impl("attend", c10::DispatchKey::CPU, TORCH_FN(attend));
}
