// The steps of LSTMs, GRUs and RNNs, from the sums of their gates.
#pragma once

#include <ATen/Parallel.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "activations.h"

namespace passnet::recurrent {

using direct::Activation, direct::Lanes, direct::LANES, direct::all, direct::load_some, direct::store_some;

enum class Kind { LSTM, GRU, RNN_TANH, RNN_RELU };

inline Kind kind_of(const std::string& name) {
  if (name == "lstm") return Kind::LSTM;
  if (name == "gru") return Kind::GRU;
  if (name == "rnn_tanh") return Kind::RNN_TANH;
  if (name == "rnn_relu") return Kind::RNN_RELU;
  throw std::runtime_error("passnet: no recurrent layer " + name);
}

inline Lanes sigmoid(Lanes value) { return direct::Finish().of<Activation::SIGMOID>(value); }

inline Lanes tanh(Lanes value) {
  if constexpr (direct::HAS_ERF) return direct::Finish().of<Activation::TANH>(value);
  for (int i = 0; i < LANES; i++) value[i] = std::tanh(value[i]);
  return value;
}

// The state before a step and after it, a row for each sequence. `cell` is that of an LSTM, and is written over.
struct State {
  const float* before;
  float* after;
  float* cell;
};

// A step of some rows. `sums` are those of all gates, in torch's order: of an LSTM input, forget, cell and output; of a
// GRU, of the hidden state alone, reset, update and new, and `given` are those of the input.
template <Kind KIND>
void step(const float* sums, const float* given, const State& state, int64_t begin, int64_t end, int64_t size) {
  constexpr int GATES = KIND == Kind::LSTM ? 4 : KIND == Kind::GRU ? 3 : 1;
  for (int64_t row = begin; row < end; row++) {
    for (int64_t i = 0; i < size; i += LANES) {
      int64_t count = size - i, first = row * GATES * size + i, place = row * size + i;
      auto sum = [&](int gate) { return load_some(sums + first + gate * size, count); };
      Lanes hidden;
      if constexpr (KIND == Kind::LSTM) {
        Lanes cell = sigmoid(sum(1)) * load_some(state.cell + place, count) + sigmoid(sum(0)) * tanh(sum(2));
        store_some(state.cell + place, cell, count);
        hidden = sigmoid(sum(3)) * tanh(cell);
      } else if constexpr (KIND == Kind::GRU) {
        auto of_input = [&](int gate) { return load_some(given + first + gate * size, count); };
        Lanes reset = sigmoid(of_input(0) + sum(0)), update = sigmoid(of_input(1) + sum(1));
        Lanes fresh = tanh(of_input(2) + reset * sum(2));
        hidden = (load_some(state.before + place, count) - fresh) * update + fresh;
      } else if constexpr (KIND == Kind::RNN_TANH) {
        hidden = tanh(sum(0));
      } else {
        hidden = direct::Finish().of<Activation::RELU>(sum(0));
      }
      store_some(state.after + place, hidden, count);
    }
  }
}

inline void step(Kind kind, const float* sums, const float* given, const State& state, int64_t rows, int64_t size) {
  at::parallel_for(0, rows, std::max<int64_t>(1, 4096 / size), [&](int64_t begin, int64_t end) {
    auto run = [&]<Kind KIND>() { step<KIND>(sums, given, state, begin, end, size); };
    switch (kind) {
      case Kind::LSTM: return run.template operator()<Kind::LSTM>();
      case Kind::GRU: return run.template operator()<Kind::GRU>();
      case Kind::RNN_TANH: return run.template operator()<Kind::RNN_TANH>();
      case Kind::RNN_RELU: return run.template operator()<Kind::RNN_RELU>();
    }
  });
}

}  // namespace passnet::recurrent
