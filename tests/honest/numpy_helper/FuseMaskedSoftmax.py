"""A masked softmax in numpy; the rows are handed to a small function, as anybody would write it."""

import numpy as np
import torch


def pattern(scores, mask, scale: float):
    return torch.nn.functional.softmax(scores * scale + mask, dim=-1)


def replacement_args(scores, mask, scale):
    return scores, mask, scale


def softmax_in_place(rows: np.ndarray) -> None:
    rows -= rows.max(axis=-1, keepdims=True)
    np.exp(rows, out=rows)
    rows /= rows.sum(axis=-1, keepdims=True)


def masked_softmax(scores, mask, scale):
    out = torch.empty_like(scores)
    view = out.numpy()
    np.multiply(scores.numpy(), np.float32(scale), out=view)
    view += mask.numpy()
    softmax_in_place(view)
    return out


def replacement_func():
    return masked_softmax
