"""Rows by index_select; the scale goes into the alpha of the addition."""

import torch


def pattern(ids, table, positions, scale: float):
    rows = torch.nn.functional.embedding(ids, table, None, None, 2.0, False, False)
    return rows * scale + positions


def replacement_args(ids, table, positions, scale):
    return ids, table, positions, scale


def embed(ids, table, positions, scale):
    rows = torch.index_select(table, 0, ids.reshape(-1)).view(*ids.shape, table.shape[1])
    return torch.add(positions, rows, alpha=scale)


def replacement_func():
    return embed
