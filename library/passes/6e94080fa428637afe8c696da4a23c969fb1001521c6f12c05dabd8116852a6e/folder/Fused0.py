"""4 ops in kernels that Inductor generated, for 1 forms of their arguments."""

import functools

import torch

from pass_dir import sources_0
from passnet.passes import cpp


@functools.cache
def kernel(source):
    return cpp.kernel(source, "launch")


def pattern(in_0, in_1, in_2):
    tmp_0 = torch.nn.functional.dropout(in_0, 0.0, False, False)
    tmp_1 = in_1.reshape(1, -1, 1, 1)
    tmp_2 = tmp_0.mul(tmp_1)
    tmp_3 = tmp_2 + in_2
    return tmp_3


def replacement_args(in_0, in_1, in_2):
    return in_0, in_1, in_2,


def form_0(in_0, in_1, in_2):
    if in_0.stride() != (125440, 1, 2240, 40):
        laid_out = cpp.empty_strided((1, 40, 56, 56), (125440, 1, 2240, 40), torch.float32)
        in_0 = laid_out.copy_(in_0)
    in_1 = in_1.contiguous()
    if in_2.stride() != (125440, 1, 2240, 40):
        laid_out = cpp.empty_strided((1, 40, 56, 56), (125440, 1, 2240, 40), torch.float32)
        in_2 = laid_out.copy_(in_2)
    out_0 = cpp.empty_strided((1, 40, 56, 56), (125440, 1, 2240, 40), torch.float32)
    kernel(sources_0.SOURCE_0)(in_0, in_1, in_2, out_0)
    return out_0


FORMS = {
    ((1, 40, 56, 56), torch.float32, (40,), torch.float32, (1, 40, 56, 56), torch.float32): form_0,
}


STRIDES = {
    ((1, 40, 56, 56), torch.float32, (40,), torch.float32, (1, 40, 56, 56), torch.float32): ((125440, 1, 2240, 40), (1,), (125440, 1, 2240, 40)),
}


def guard(in_0, in_1, in_2):  # for other arguments no kernel was generated, or they would be copied
    given = [(tuple(map(int, tensor.shape)), tensor.dtype) for tensor in (in_0, in_1, in_2,)]
    key = tuple(part for form in given for part in form)
    return key in FORMS and all(
        size == 1 or stride == expected
        for tensor, strides in zip((in_0, in_1, in_2,), STRIDES[key])
        for size, stride, expected in zip(tensor.shape, tensor.stride(), strides)
    )


def replacement(in_0, in_1, in_2):
    return FORMS[(in_0.shape, in_0.dtype, in_1.shape, in_1.dtype, in_2.shape, in_2.dtype)](in_0, in_1, in_2)


def replacement_func():
    return replacement
