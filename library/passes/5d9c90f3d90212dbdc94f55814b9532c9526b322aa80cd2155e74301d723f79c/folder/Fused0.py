"""3 ops in kernels that Inductor generated, for 1 forms of their arguments."""

import functools

import torch

from pass_dir import sources_0
from passnet.passes import cpp


@functools.cache
def kernel(source):
    return cpp.kernel(source, "launch")


def pattern(in_0, in_1, in_2, in_3):
    tmp_0 = torch.nn.functional.dropout(in_0, 0.0, False, False)
    tmp_1 = in_1 + tmp_0
    tmp_2 = torch.nn.functional.layer_norm(tmp_1, (512,), in_2, in_3, 1e-06)
    return tmp_2


def replacement_args(in_0, in_1, in_2, in_3):
    return in_0, in_1, in_2, in_3,


def form_0(in_0, in_1, in_2, in_3):
    in_0 = in_0.contiguous()
    if in_1.stride() != (100352, 1, 196):
        laid_out = cpp.empty_strided((1, 196, 512), (100352, 1, 196), torch.float32)
        in_1 = laid_out.copy_(in_1)
    in_2 = in_2.contiguous()
    in_3 = in_3.contiguous()
    out_0 = cpp.empty_strided((1, 196, 512), (100352, 512, 1), torch.float32)
    kernel(sources_0.SOURCE_0)(in_0, in_1, in_2, in_3, out_0)
    return out_0


FORMS = {
    ((1, 196, 512), torch.float32, (1, 196, 512), torch.float32, (512,), torch.float32, (512,), torch.float32): form_0,
}


STRIDES = {
    ((1, 196, 512), torch.float32, (1, 196, 512), torch.float32, (512,), torch.float32, (512,), torch.float32): ((100352, 512, 1), (100352, 1, 196), (1,), (1,)),
}


def guard(in_0, in_1, in_2, in_3):  # for other arguments no kernel was generated, or they would be copied
    given = [(tuple(map(int, tensor.shape)), tensor.dtype) for tensor in (in_0, in_1, in_2, in_3,)]
    key = tuple(part for form in given for part in form)
    return key in FORMS and all(
        size == 1 or stride == expected
        for tensor, strides in zip((in_0, in_1, in_2, in_3,), STRIDES[key])
        for size, stride, expected in zip(tensor.shape, tensor.stride(), strides)
    )


def replacement(in_0, in_1, in_2, in_3):
    return FORMS[(in_0.shape, in_0.dtype, in_1.shape, in_1.dtype, in_2.shape, in_2.dtype, in_3.shape, in_3.dtype)](in_0, in_1, in_2, in_3)


def replacement_func():
    return replacement
