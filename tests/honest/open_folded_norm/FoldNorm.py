"""conv(x, w) normed is conv(x, w * scale) + shift; the fold is tiny beside the convolution."""

import torch


def pattern(x, weight, mean, var, gamma, beta, stride: tuple, padding: tuple, eps: float):
    y = torch.conv2d(x, weight, None, stride, padding, (1, 1), 1)
    y = torch.nn.functional.batch_norm(y, mean, var, gamma, beta, False, 0.1, eps)
    return torch.nn.functional.relu(y, inplace=True)


def replacement_args(x, weight, mean, var, gamma, beta, stride, padding, eps):
    return x, weight, mean, var, gamma, beta, stride, padding, eps


def folded(x, weight, mean, var, gamma, beta, stride, padding, eps):
    scale = gamma * torch.rsqrt(var + eps)
    shift = torch.addcmul(beta, mean, scale, value=-1)
    y = torch.conv2d(x, weight * scale[:, None, None, None], shift, stride, padding)
    return torch.relu_(y)


def replacement_func():
    return folded
