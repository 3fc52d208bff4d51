"""Two matmuls and a softmax are scaled_dot_product_attention with that scale."""

import torch
from torch.nn import functional as F


def pattern(query, key, value, scale: float):
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    return torch.matmul(F.softmax(scores, dim=-1), value)


def replacement_args(query, key, value, scale):
    return query, key, value, scale


def attention(query, key, value, scale):
    return F.scaled_dot_product_attention(query, key, value, scale=scale)


def replacement_func():
    return attention
