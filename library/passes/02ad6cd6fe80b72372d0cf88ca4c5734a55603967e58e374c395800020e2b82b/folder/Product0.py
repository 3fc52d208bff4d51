"""A product that oneDNN computes, for 1 forms of its arguments."""

import torch


def pattern(in_0, in_1, in_2):
    tmp_0 = torch._C._nn.linear(in_0, in_1, in_2)
    return tmp_0


def replacement_args(in_0, in_1, in_2):
    return in_0, in_1, in_2,


FORMS = {
    (((1, 196, 512), torch.float32), ((2048, 512), torch.float32), ((2048,), torch.float32),),
}


def guard(in_0, in_1, in_2):  # in other forms it was not judged
    tensors = in_0, in_1, in_2,
    given = tuple((tuple(map(int, tensor.shape)), tensor.dtype) for tensor in tensors)
    return given in FORMS and all(tensor.is_contiguous() for tensor in tensors)


def replacement(in_0, in_1, in_2):
    return torch.ops.mkldnn._linear_pointwise(in_0, in_1, in_2, "none", [], None)


def replacement_func():
    return replacement
