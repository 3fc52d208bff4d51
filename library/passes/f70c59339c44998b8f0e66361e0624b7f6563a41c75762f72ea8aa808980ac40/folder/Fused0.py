"""7 ops in kernels that Inductor generated, for 1 forms of their arguments."""

import functools

import torch

from pass_dir import sources_0
from passnet.passes import cpp


@functools.cache
def kernel(source):
    return cpp.kernel(source, "launch")


def pattern(in_0, in_1, in_2, in_3, in_4):
    tmp_0 = in_0.flatten(2)
    tmp_1 = tmp_0.transpose(1, 2)
    tmp_2 = in_1.expand(1, -1, -1)
    tmp_3 = torch.cat([tmp_2, tmp_1], dim=1)
    tmp_4 = tmp_3 + in_2
    tmp_5 = torch.nn.functional.dropout(tmp_4, 0.0, False, False)
    tmp_6 = torch.nn.functional.layer_norm(tmp_5, (192,), in_3, in_4, 1e-06)
    return tmp_5, tmp_6


def replacement_args(in_0, in_1, in_2, in_3, in_4):
    return in_0, in_1, in_2, in_3, in_4,


def form_0(in_0, in_1, in_2, in_3, in_4):
    in_0 = in_0.contiguous()
    in_1 = in_1.contiguous()
    in_2 = in_2.contiguous()
    in_3 = in_3.contiguous()
    in_4 = in_4.contiguous()
    out_0 = cpp.empty_strided((1, 197, 192), (37824, 192, 1), torch.float32)
    out_1 = cpp.empty_strided((1, 197, 192), (37824, 192, 1), torch.float32)
    kernel(sources_0.SOURCE_0)(in_0, in_1, in_2, in_3, in_4, out_0, out_1)
    return out_0, out_1


FORMS = {
    ((1, 192, 14, 14), torch.float32, (1, 1, 192), torch.float32, (1, 197, 192), torch.float32, (192,), torch.float32, (192,), torch.float32): form_0,
}


STRIDES = {
    ((1, 192, 14, 14), torch.float32, (1, 1, 192), torch.float32, (1, 197, 192), torch.float32, (192,), torch.float32, (192,), torch.float32): ((37632, 196, 14, 1), (192, 192, 1), (37824, 192, 1), (1,), (1,)),
}


def guard(in_0, in_1, in_2, in_3, in_4):  # for other arguments no kernel was generated, or they would be copied
    given = [(tuple(map(int, tensor.shape)), tensor.dtype) for tensor in (in_0, in_1, in_2, in_3, in_4,)]
    key = tuple(part for form in given for part in form)
    return key in FORMS and all(
        size == 1 or stride == expected
        for tensor, strides in zip((in_0, in_1, in_2, in_3, in_4,), STRIDES[key])
        for size, stride, expected in zip(tensor.shape, tensor.stride(), strides)
    )


def replacement(in_0, in_1, in_2, in_3, in_4):
    return FORMS[(in_0.shape, in_0.dtype, in_1.shape, in_1.dtype, in_2.shape, in_2.dtype, in_3.shape, in_3.dtype, in_4.shape, in_4.dtype)](in_0, in_1, in_2, in_3, in_4)


def replacement_func():
    return replacement
