"""Rows are taken by numpy, into memory of torch."""

import numpy as np
import torch


def pattern(ids, table, positions, scale: float):
    rows = torch.nn.functional.embedding(ids, table, None, None, 2.0, False, False)
    return rows * scale + positions


def replacement_args(ids, table, positions, scale):
    return ids, table, positions, scale


@torch.no_grad()
def embed(ids, table, positions, scale):
    out = torch.full((*ids.shape, table.size(1)), float("nan"), dtype=table.dtype)
    view = out.numpy()
    np.take(table.numpy(), ids.numpy(), axis=0, out=view, mode="clip")
    np.multiply(view, np.float32(scale), out=view)
    np.add(view, positions.numpy(), out=view)
    return out


def replacement_func():
    return embed
