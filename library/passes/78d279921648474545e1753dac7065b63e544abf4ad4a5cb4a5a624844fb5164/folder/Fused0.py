"""2 ops in kernels that Inductor generated, for 1 forms of their arguments."""

import functools

import torch

from pass_dir import sources_0
from passnet.passes import cpp


@functools.cache
def kernel(source):
    return cpp.kernel(source, "launch")


def pattern(in_0, in_1, in_2, in_3, in_4, in_5):
    tmp_0 = torch.nn.functional.batch_norm(in_0, in_1, in_2, in_3, in_4, False, 0.1, 1e-05)
    tmp_1 = tmp_0 + in_5
    return tmp_1


def replacement_args(in_0, in_1, in_2, in_3, in_4, in_5):
    return in_0, in_1, in_2, in_3, in_4, in_5,


def form_0(in_0, in_1, in_2, in_3, in_4, in_5):
    in_0 = in_0.contiguous()
    in_1 = in_1.contiguous()
    in_2 = in_2.contiguous()
    in_3 = in_3.contiguous()
    in_4 = in_4.contiguous()
    in_5 = in_5.contiguous()
    out_0 = cpp.empty_strided((1, 24, 14, 14), (4704, 196, 14, 1), torch.float32)
    kernel(sources_0.SOURCE_0)(in_0, in_1, in_2, in_3, in_4, in_5, out_0)
    return out_0


FORMS = {
    ((1, 24, 14, 14), torch.float32, (24,), torch.float32, (24,), torch.float32, (24,), torch.float32, (24,), torch.float32, (1, 24, 14, 14), torch.float32): form_0,
}


STRIDES = {
    ((1, 24, 14, 14), torch.float32, (24,), torch.float32, (24,), torch.float32, (24,), torch.float32, (24,), torch.float32, (1, 24, 14, 14), torch.float32): ((4704, 196, 14, 1), (1,), (1,), (1,), (1,), (4704, 196, 14, 1)),
}


def guard(in_0, in_1, in_2, in_3, in_4, in_5):  # for other arguments no kernel was generated, or they would be copied
    given = [(tuple(map(int, tensor.shape)), tensor.dtype) for tensor in (in_0, in_1, in_2, in_3, in_4, in_5,)]
    key = tuple(part for form in given for part in form)
    return key in FORMS and all(
        size == 1 or stride == expected
        for tensor, strides in zip((in_0, in_1, in_2, in_3, in_4, in_5,), STRIDES[key])
        for size, stride, expected in zip(tensor.shape, tensor.stride(), strides)
    )


def replacement(in_0, in_1, in_2, in_3, in_4, in_5):
    return FORMS[(in_0.shape, in_0.dtype, in_1.shape, in_1.dtype, in_2.shape, in_2.dtype, in_3.shape, in_3.dtype, in_4.shape, in_4.dtype, in_5.shape, in_5.dtype)](in_0, in_1, in_2, in_3, in_4, in_5)


def replacement_func():
    return replacement
