"""2 ops in kernels that Inductor generated, for 1 forms of their arguments."""

import functools

import torch

from pass_dir import sources_0
from passnet.passes import cpp


@functools.cache
def kernel(source):
    return cpp.kernel(source, "launch")


def pattern(in_0):
    tmp_0 = torch._C._nn.gelu(in_0)
    tmp_1 = torch.nn.functional.dropout(tmp_0, 0.0, False, False)
    return tmp_1


def replacement_args(in_0):
    return in_0,


def form_0(in_0):
    if in_0.stride() != (501760, 1, 8960, 160):
        laid_out = cpp.empty_strided((1, 160, 56, 56), (501760, 1, 8960, 160), torch.float32)
        in_0 = laid_out.copy_(in_0)
    out_0 = cpp.empty_strided((1, 160, 56, 56), (501760, 1, 8960, 160), torch.float32)
    kernel(sources_0.SOURCE_0)(in_0, out_0)
    return out_0


FORMS = {
    ((1, 160, 56, 56), torch.float32): form_0,
}


STRIDES = {
    ((1, 160, 56, 56), torch.float32): ((501760, 1, 8960, 160),),
}


def guard(in_0):  # for other arguments no kernel was generated, or they would be copied
    given = [(tuple(map(int, tensor.shape)), tensor.dtype) for tensor in (in_0,)]
    key = tuple(part for form in given for part in form)
    return key in FORMS and all(
        size == 1 or stride == expected
        for tensor, strides in zip((in_0,), STRIDES[key])
        for size, stride, expected in zip(tensor.shape, tensor.stride(), strides)
    )


def replacement(in_0):
    return FORMS[(in_0.shape, in_0.dtype)](in_0)


def replacement_func():
    return replacement
