"""The embedding, its scale and the positions in one reading of the rows that are needed."""

import torch

from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void embed(const int64_t* ids, const float* table, const float* positions, float* out,
                      int64_t batch, int64_t length, int64_t dim, float scale) {
  for (int64_t r = 0; r < batch * length; r++) {
    const float *row = table + ids[r] * dim, *at = positions + r % length * dim;
    for (int64_t i = 0; i < dim; i++) out[r * dim + i] = row[i] * scale + at[i];
  }
}
"""
EMBED = cpp.kernel(SOURCE, "embed", "ppppnnnf")


def pattern(ids, table, positions, scale: float):
    rows = torch.nn.functional.embedding(ids, table, None, None, 2.0, False, False)
    return rows * scale + positions


def replacement_args(ids, table, positions, scale):
    return ids, table, positions, scale


def embed(ids, table, positions, scale):
    ids, table, positions = (item.contiguous() for item in (ids, table, positions))
    assert ids.dtype == torch.int64
    out = table.new_empty((*ids.shape, table.shape[1]))
    pointers = (ids.data_ptr(), table.data_ptr(), positions.data_ptr(), out.data_ptr())
    EMBED(*pointers, *ids.shape, table.shape[1], scale)
    return out


def replacement_func():
    return embed
