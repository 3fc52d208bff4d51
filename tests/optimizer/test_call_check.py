"""Each claim is tried in C++ and in Python, which give the same answers."""

from collections import OrderedDict, namedtuple
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

from passnet.errors import InputError, PassError
from passnet.optimizer.call import compiled_check
from passnet.optimizer.call.call_check import (
    Misfit,
    can_be_bounded,
    find_misfit,
    input_signature,
    python_check,
)
from tests.optimizer.checks import Anything, X, fits
from tests.optimizer.hand_made import Net, entry_of

Pair = namedtuple("Pair", "first second")

ROWS = torch.randn(6, 8)

FITTING = {
    "other values": (X, X * 2),
    "nan and infinity": (X, X * float("nan") / 0),
    "a view": (X, ROWS[:3].as_strided((3, 4), (4, 1), 8)),
    "a parameter": (X, torch.nn.Parameter(X, requires_grad=False)),
    "strides of dims of one": (torch.ones(3, 1), torch.ones(1, 3).t()),
    "none of many": (torch.ones(0, 4), torch.zeros(0, 4)),
    "constants": (True, True),
    "nan": (float("nan"), float("nan")),
    "dtype": (torch.float32, torch.float32),
    "nested": ([X, (1, {"a": -X})], [X + 1, (1, {"a": X + 2})]),
    "named": (Pair(X, 1), Pair(X + 1, 1)),
    "ordered": (OrderedDict(a=X, b=None), OrderedDict(a=X + 1, b=None)),
}

MISFITS = {
    "shape": (X, torch.randn(2, 4), Misfit.SHAPE),
    "num dims": (X, torch.randn(3, 4, 1), Misfit.SHAPE),
    "of none": (X, torch.randn(0, 4), Misfit.SHAPE),
    "dtype": (X, X.double(), Misfit.DTYPE),
    "transposed": (X, torch.randn(4, 3).t(), Misfit.STRIDES),
    "a slice": (X, ROWS[:3, :4], Misfit.STRIDES),
    "expanded": (X, torch.randn(1, 4).expand(3, 4), Misfit.STRIDES),
    "meta": (X, X.to("meta"), Misfit.DEVICE),
    "sparse": (X, X.to_sparse(), Misfit.LAYOUT),
    "conjugated": (X.to(torch.complex64), X.to(torch.complex64).conj(), Misfit.LAYOUT),
    "negative": (X, X.to(torch.complex64).conj().imag, Misfit.LAYOUT),
    "subclass": (X, X.as_subclass(type("Own", (torch.Tensor,), {})), Misfit.KIND),
    "number": (X, 3.0, Misfit.KIND),
    "tensor for a number": (3.0, X, Misfit.CONSTANT),
    "another number": (3, 4, Misfit.CONSTANT),
    "number of another type": (1, True, Misfit.CONSTANT),
    "signed zero": (0.0, -0.0, Misfit.CONSTANT),
    "string": ("a", "b", Misfit.CONSTANT),
    "none": (None, X, Misfit.CONSTANT),
    "object": (None, object(), Misfit.CONSTANT),
    "tuple for a list": ([X, X], (X, X), Misfit.NESTING),
    "list for a tensor": (X, [X], Misfit.NESTING),
    "one more": ([X], [X, X], Misfit.NESTING),
    "key": ({"a": X}, {"b": X}, Misfit.NESTING),
    "order of keys": ({"a": X, "b": 1}, {"b": 1, "a": X}, Misfit.NESTING),
    "named": (Pair(X, 1), (X, 1), Misfit.NESTING),
    "within named": (Pair(X, 1), Pair(X, 2), Misfit.CONSTANT),
    "twice the same": ([X, X + 1], [X, X], Misfit.SAME),
    "no longer the same": ([X, X], [X, X + 1], Misfit.SAME),
}


@pytest.mark.parametrize("given_as", ["positional", "named"])
@pytest.mark.parametrize("case", FITTING)
def test_a_call_of_the_examples_form_fits(check_of, case, given_as):
    example, value = FITTING[case]
    if given_as == "named":
        check = check_of(Anything(), entry_of(Anything(), key=example))
        found = check((), {"key": value})
    else:
        check = check_of(Anything(), entry_of(Anything(), example))
        found = check((value,), {})
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(value) if torch.is_tensor(leaf)]
    assert isinstance(found, list) and list(map(id, found)) == list(map(id, tensors))


@pytest.mark.parametrize("case", MISFITS)
def test_a_call_of_another_form_does_not(check_of, case):
    example, value, misfit = MISFITS[case]
    check = check_of(Anything(), entry_of(Anything(), example))
    assert check((value,), {}) == misfit
    assert fits(check, example)
    check = check_of(Anything(), entry_of(Anything(), 1, key=example))
    assert check((1,), {"key": value}) == misfit
    assert not fits(check, 1) and not fits(check, 1, example) and not fits(check, 1, other=example)


def inference_tensor():
    with torch.inference_mode():
        return X + 1


def test_tensors_made_in_inference_mode_fit(check_of):
    check = check_of(Anything(), entry_of(Anything(), X))
    assert fits(check, inference_tensor())
    check = check_of(Anything(), entry_of(Anything(), inference_tensor()))
    assert fits(check, X)


CONTEXTS = {
    "none": (nullcontext, 0),
    "no_grad": (torch.no_grad, 0),
    "inference_mode": (torch.inference_mode, 0),
    "autocast": (lambda: torch.autocast("cpu"), Misfit.AUTOCAST),
    "autocast switched off": (lambda: torch.autocast("cpu", enabled=False), 0),
    "dispatch mode": (lambda: FlopCounterMode(display=False), Misfit.MODE),
    "default device": (lambda: torch.device("cpu"), Misfit.MODE),
}


@pytest.mark.parametrize("case", CONTEXTS)
def test_what_else_the_thread_asks_of_torch_is_seen(check_of, case):
    context, misfit = CONTEXTS[case]
    check = check_of(Anything(), entry_of(Anything(), X))
    with context():
        assert check((X,), {}) == (misfit or [X])
    assert fits(check, X)


def test_transforms_and_traces_are_seen(check_of):
    check = check_of(Anything(), entry_of(Anything(), X))
    seen = []

    def look(x):
        seen.append(check((x,), {}))
        seen.append(check((X,), {}))
        return x * 2

    torch.vmap(look)(torch.stack([X, X]))
    torch.func.jvp(look, (X,), (X,))
    torch.func.grad(lambda x: look(x).sum())(X)
    torch.jit.trace(look, X, check_trace=False)
    assert seen == [Misfit.MODE] * 8
    with forward_ad.dual_level():
        assert check((forward_ad.make_dual(X, X),), {}) == Misfit.GRADIENTS
        assert fits(check, X)


def test_another_default_dtype_is_seen(check_of):
    check = check_of(Anything(), entry_of(Anything(), X))
    torch.set_default_dtype(torch.float64)
    try:
        assert check((X,), {}) == Misfit.MODE
    finally:
        torch.set_default_dtype(torch.float32)


def test_another_dtype_of_autocast_is_seen(check_of):
    check, former = check_of(Anything(), entry_of(Anything(), X)), torch.get_autocast_dtype("cpu")
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert check((X,), {}) == Misfit.AUTOCAST
    finally:
        torch.set_autocast_dtype("cpu", former)
    assert fits(check, X)


def test_channels_of_size_one_in_another_place_are_seen(check_of):
    plain = torch.randn(2, 1, 4, 5)
    last = torch.empty_strided((2, 1, 4, 5), (20, 1, 5, 1)).copy_(plain)
    assert plain.stride() != last.stride() and last.is_contiguous()
    for own, other in ((plain, last), (last, plain)):
        check = check_of(Anything(), entry_of(Anything(), own))
        assert fits(check, own) and check((other,), {}) == Misfit.STRIDES
    check = check_of(Anything(), entry_of(Anything(), torch.randn(1, 3)))
    assert fits(check, torch.empty_strided((1, 3), (7, 1)).fill_(1.0))  # means nothing


def test_a_tensor_with_attributes_does_not_fit(check_of):
    check, x = check_of(Anything(), entry_of(Anything(), X)), X.clone()
    x._dynamo_weak_dynamic_indices = {0}
    assert fits(check, x)
    x.scale = 2.0
    assert check((x,), {}) == Misfit.KIND


def test_denormals_that_are_flushed_are_seen(check_of):
    check = check_of(Anything(), entry_of(Anything(), X))
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor flushes none")
    try:
        assert check((X,), {}) == Misfit.MODE
    finally:
        torch.set_flush_denormal(False)
    assert fits(check, X)


def test_gradients_are_off_and_needed_as_in_the_example(check_of):
    needing = X.clone().requires_grad_()
    for net in (Anything(), Net().eval()):
        check = check_of(net, entry_of(net, X))
        assert fits(check, X) and check((needing,), {}) == Misfit.GRADIENTS
        with torch.enable_grad():
            assert check((X,), {}) == Misfit.GRADIENTS
        with torch.inference_mode():
            assert fits(check, X)
        check = check_of(net, entry_of(net, needing))
        assert fits(check, needing) and check((X,), {}) == Misfit.GRADIENTS
    check = check_of(net, entry_of(net, X))
    net.layers[0].requires_grad_(False)
    assert check((X,), {}) == Misfit.GRADIENTS
    net.layers[0].requires_grad_(True)
    assert fits(check, X)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_card_tensors_begin_at_multiples_of_sixteen_bytes(check_of):
    net, x = Net().eval().cuda(), torch.randn(13, device="cuda")
    check = check_of(net, entry_of(net, x[:12].view(3, 4)))
    with torch.no_grad():
        assert fits(check, x[:12].view(3, 4)) and check((X,), {}) == Misfit.DEVICE
        assert check((x[1:].view(3, 4),), {}) == Misfit.ADDRESS
        net.cpu()
        assert not fits(check, x[:12].view(3, 4))


BOUNDED = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", BOUNDED, ids=str)
def test_arguments_beyond_a_bound_do_not_fit(check_of, dtype):
    example = torch.zeros(3, 5, dtype=dtype).t()
    check = check_of(Anything(), entry_of(Anything(), example, 3, torch.arange(4), bound=8.0))

    def with_value(value):
        given = torch.zeros(3, 5, dtype=dtype).t()
        given[4, 1] = value
        return check((given, 3, torch.full((4,), 99)), {})

    for value in (0.0, -8.0, 8.0, 1e-40, -0.0):
        assert isinstance(with_value(value), list), value
    for value in (float("nan"), -float("nan"), float("inf"), -float("inf"), 8.5, -9.0):
        assert with_value(value) == Misfit.VALUES, value


@pytest.mark.parametrize("dtype", BOUNDED, ids=str)
def test_no_bound_lets_an_infinity_through(check_of, dtype):
    example = torch.ones(2, dtype=dtype)
    check = check_of(Anything(), entry_of(Anything(), example, bound=1.79e308))
    assert fits(check, torch.full((2,), min(torch.finfo(dtype).max, 1e308), dtype=dtype))
    assert check((example * float("inf"),), {}) == Misfit.VALUES


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("bounds", [(0, 7), (-3, 4), (5, 5)], ids=str)
def test_whole_numbers_beyond_their_bounds_do_not_fit(check_of, dtype, bounds):
    low, high = bounds
    example = torch.full((3, 4), low, dtype=dtype).t()
    entry = entry_of(Anything(), X, 3, example, index_bounds=(None, bounds))
    check = check_of(Anything(), entry)

    def with_value(value):
        given = torch.full((3, 4), high, dtype=dtype).t()
        given[3, 1] = value
        return check((X * float("nan"), 3, given), {})

    for value in (low, high):
        assert isinstance(with_value(value), list), value
    for value in (low - 1, high + 1, torch.iinfo(dtype).max, torch.iinfo(dtype).min):
        assert with_value(value) == Misfit.VALUES, value
    if dtype is torch.int64:
        assert with_value(2**32 + low) == Misfit.VALUES


def test_what_can_be_bounded_lies_dense_in_memory():
    assert can_be_bounded(X) and can_be_bounded(X.t()) and can_be_bounded(torch.arange(3)[::2])
    assert can_be_bounded(torch.ones(3, 1).expand(3, 1)) and can_be_bounded(torch.ones(()))
    for tensor in (X[:, ::2], X[:1].expand(3, 4), X.to(torch.complex64), X.to("meta")):
        assert not can_be_bounded(tensor)
    assert not can_be_bounded(X.to(torch.float8_e4m3fn))


def test_what_cannot_be_watched_is_refused():
    net = Net().eval()
    with pytest.raises(InputError, match="input 1 is of type object"):
        input_signature(net, entry_of(Anything(), object()))
    with pytest.raises(InputError, match="input mask is a tensor with layout"):
        input_signature(net, entry_of(Anything(), mask=X.to_sparse()))
    with pytest.raises(InputError, match=r"weight layers\.0\.weight is not the net"):
        input_signature(Net().eval(), entry_of(net, X))
    with torch.inference_mode():
        unwatched = Net().eval()
    with pytest.raises(InputError, match="made in inference mode"):
        input_signature(unwatched, entry_of(unwatched, X))


def test_sentences_say_what_is_given_and_what_is_wanted():
    net = Net().eval()
    form = input_signature(net, entry_of(net, X, factor=2.0))
    with torch.no_grad():
        sentences = [
            find_misfit(form, (torch.ones(1, 4),), {"factor": 2.0}),
            find_misfit(form, (X,), {"factor": 3.0}),
            find_misfit(form, (X.half(),), {"factor": 2.0}),
        ]
        net.layers[1].train()
        sentences.append(find_misfit(form, (X,), {"factor": 2.0}))
    assert [each[1] for each in sentences] == [
        "input 1 has shape (1, 4) and not (3, 4)",
        "input factor is 3.0 and not 2.0",
        "input 1 has dtype torch.float16 and not torch.float32",
        "layers.1 is in training mode",
    ]


def test_without_a_compiler_calls_are_checked_in_python(monkeypatch, tmp_path, caplog):
    compiled_check.extension.cache_clear()
    form = input_signature(Anything(), entry_of(Anything(), X))
    with monkeypatch.context() as patch:
        patch.setenv("CXX", "no-such-compiler")
        check = compiled_check.call_check(form)
        assert fits(check, X) and check((X[:1],), {}) == Misfit.SHAPE
        assert "which may take a millisecond: C++ kernels need g++" in caplog.text
        net = Net().eval()
        folded = input_signature(net, entry_of(net, X, is_frozen=True, compares=True))
        with pytest.raises(InputError, match="folded weights cannot be compared at each call"):
            compiled_check.call_check(folded)
    assert compiled_check.call_check(form).__name__ == "tensors_or_misfit"
    with pytest.raises(PassError, match="install the headers of Python"):
        compiled_check.extension(tmp_path)


def test_a_check_that_nobody_holds_is_collected():
    import gc
    import weakref

    net = Net().eval()
    gone = weakref.ref(net.layers[0])
    net.check = compiled_check.compiled_check(input_signature(net, entry_of(net, X)))
    del net
    gc.collect()
    assert gone() is None


leaves = st.one_of(
    st.sampled_from([None, 0, 1, True, False, 0.0, -0.0, float("nan"), "a", torch.float32]),
    st.builds(
        lambda shape, dtype, view: view(torch.ones(shape, dtype=dtype)),
        st.lists(st.integers(0, 2), max_size=2),
        st.sampled_from([torch.float32, torch.int64]),
        st.sampled_from(
            [
                lambda x: x,
                lambda x: x.t() if x.ndim == 2 else x,
                lambda x: x[..., None].expand(*x.shape, 2),
                lambda x: x[..., ::2] if x.ndim else x,
            ]
        ),
    ),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    ),
    max_leaves=3,
)


@settings(max_examples=150, deadline=None, database=None)
@given(values, values)
def test_both_ways_say_the_same(example, value):
    form = input_signature(Anything(), entry_of(Anything(), example))
    in_cpp, in_python = compiled_check.compiled_check(form), python_check(form)
    for call in (((value,), {}), ((example,), {}), ((), {"a": value}), ((value, value), {})):
        first, second = in_cpp(*call), in_python(*call)
        if isinstance(first, list):
            assert isinstance(second, list) and list(map(id, first)) == list(map(id, second))
        else:
            assert first == second
    assert isinstance(in_cpp((example,), {}), list)
