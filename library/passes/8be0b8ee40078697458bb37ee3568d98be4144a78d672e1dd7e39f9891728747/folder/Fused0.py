"""2 ops in kernels that Inductor generated, for 1 forms of their arguments."""

import functools

import torch

from pass_dir import sources_0
from passnet.passes import cpp


@functools.cache
def kernel(source):
    return cpp.kernel(source, "launch")


def pattern(in_0, in_1, in_2):
    tmp_0 = torch.nn.functional.layer_norm(in_0, (160,), in_1, in_2, 1e-06)
    tmp_1 = tmp_0.permute(0, 3, 1, 2)
    return tmp_1


def replacement_args(in_0, in_1, in_2):
    return in_0, in_1, in_2,


def form_0(in_0, in_1, in_2):
    in_0 = in_0.contiguous()
    in_1 = in_1.contiguous()
    in_2 = in_2.contiguous()
    out_0 = cpp.empty_strided((1, 160, 14, 14), (31360, 1, 2240, 160), torch.float32)
    kernel(sources_0.SOURCE_0)(in_0, in_1, in_2, out_0)
    return out_0


FORMS = {
    ((1, 14, 14, 160), torch.float32, (160,), torch.float32, (160,), torch.float32): form_0,
}


STRIDES = {
    ((1, 14, 14, 160), torch.float32, (160,), torch.float32, (160,), torch.float32): ((31360, 2240, 160, 1), (1,), (1,)),
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
