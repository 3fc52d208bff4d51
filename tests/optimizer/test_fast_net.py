"""The backends here add a hundred to the output, which shows that they ran."""

import copy
import io
import pickle
import threading
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from passnet.errors import InputError
from passnet.optimizer.call.fast_net import FastNet
from tests.optimizer.hand_made import Net, entry_of, plus_hundred

X = torch.randn(3, 4)


def ran_fast(fast, *args, **kwargs):
    """Whether a call ran the entry; either way it gives what it should."""
    got = torch.utils._pytree.tree_leaves(fast(*args, **kwargs))
    wanted = torch.utils._pytree.tree_leaves(fast.original_net(*args, **kwargs))
    is_fast = torch.equal(got[0], wanted[0] + 100)
    for left, right in zip(got, wanted, strict=True):
        torch.testing.assert_close(left, right + 100 * is_fast, rtol=0, atol=0, equal_nan=True)
    return is_fast


@pytest.fixture
def net():
    return Net().eval()


@pytest.fixture
def fast(net):
    return FastNet(net, [entry_of(net, X, run=plus_hundred)])


@pytest.fixture(autouse=True)
def gradients_are_off():
    with torch.no_grad():
        yield


@pytest.fixture
def warnings(caplog):
    """A function that returns what was warned of since it was asked last."""

    def take():
        taken = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return taken

    return take


def test_a_call_that_fits_runs_the_entry(fast, warnings):
    assert ran_fast(fast, X) and ran_fast(fast, X * 2)
    assert fast(X).shape == (3, 4) and not warnings()


def test_any_other_runs_the_net_and_one_warning_says_why(fast, warnings):
    assert not ran_fast(fast, X[:1])
    assert warnings() == [
        "Net: input 1 has shape (1, 4) and not (3, 4): the net runs as it was; give such inputs to "
        "passnet.optimize too"
    ]
    assert not ran_fast(fast, X[:1]) and not ran_fast(fast, X[:2]) and not warnings()
    assert not ran_fast(fast, X, factor=2.0)
    assert [text.split(":")[1] for text in warnings()] == [
        " the inputs are other ones, or nested or ordered otherwise"
    ]
    assert ran_fast(fast, X) and not warnings()


def test_of_two_entries_for_one_form_the_last_runs(net):
    slow, fast = entry_of(net, X), entry_of(net, X, run=plus_hundred)
    assert ran_fast(FastNet(net, [slow, fast]), X) and not ran_fast(FastNet(net, [fast, slow]), X)


def test_errors_of_the_net_are_the_nets(fast, net):
    with pytest.raises(RuntimeError) as wanted:
        net(torch.ones(3, 5))
    with pytest.raises(RuntimeError) as got:
        fast(torch.ones(3, 5))
    assert str(got.value) == str(wanted.value)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        fast()


def test_of_several_entries_the_one_that_fits_runs_and_is_tried_first(net, warnings):
    forms = [(X,), (X[:1],), (X, X)]
    entries = [
        entry_of(net, *args, run=plus_hundred, engine=str(number))
        for number, args in enumerate(forms)
    ]
    fast = FastNet(net, entries)
    for number, args in enumerate(forms):
        assert ran_fast(fast, *args)
        assert fast.built_backends[0].engine == str(number) and len(fast.built_backends) == 3
    assert ran_fast(fast, X) and not warnings()
    assert not ran_fast(fast, X[:2])
    assert "input 1 has shape (2, 4) and not (" in warnings()[0]


def test_outputs_are_nested_as_the_nets():
    def several(x):
        return {"a": x, "b": [x, (x * 2,)]}, (x,), [x]

    def pair(x):
        return x, x * 2

    for function in (several, pair, lambda x: [x], lambda x: (x,), lambda x: {"a": x}):
        fast = FastNet(function, [entry_of(function, X, run=plus_hundred)])
        got, wanted = fast(X), function(X)
        assert torch.utils._pytree.tree_structure(got) == torch.utils._pytree.tree_structure(wanted)
        assert ran_fast(fast, X)


def test_a_function_is_a_net_too(warnings):
    fast = FastNet(torch.add, [entry_of(torch.add, X, X, run=plus_hundred)])
    assert ran_fast(fast, X, X) and not ran_fast(fast, X, X + 1)
    assert "input 2 is not the same tensor as an earlier one" in warnings()[0]
    fast = FastNet(torch.add, [entry_of(torch.add, X, X + 1, run=plus_hundred)])
    assert ran_fast(fast, X, X + 1) and not ran_fast(fast, X, X)
    assert "input 2 is the same tensor as input 1" in warnings()[0]


def test_a_function_that_holds_weights_is_refused(net):
    weight = torch.ones(4)
    for function in (net.forward, lambda x: net(x), lambda x: x * weight, partial(torch.add, X)):
        with pytest.raises(InputError, match=r"give a torch\.nn\.Module that holds it"):
            FastNet(function)
    FastNet(partial(torch.add, 1))


def test_state_and_modules_are_the_nets(fast, net):
    assert list(fast.state_dict()) == list(net.state_dict())
    assert [*map(id, fast.parameters())] == [*map(id, net.parameters())]
    assert list(fast.named_modules()) == [("", fast), *list(net.named_modules())[1:]]
    assert [name for name, _ in fast.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert [name for name, _ in fast.named_buffers()] == [n for n, _ in net.named_buffers()]
    assert list(fast.children()) == list(net.children())
    assert fast.get_submodule("layers.0") is net.layers[0]


def test_attributes_are_the_nets(fast, net):
    assert fast.scale == 0.5 and fast.layers is net.layers
    fast.scale = 2.0
    fast.extra = torch.nn.Linear(1, 1)
    assert net.scale == 2.0 and net.extra is fast.extra and not ran_fast(fast, X)
    del fast.extra
    assert not hasattr(net, "extra") and not hasattr(fast, "extra")


def test_weights_that_are_loaded_are_used(fast, net, warnings):
    before, other = fast(X), Net().eval()
    fast.load_state_dict(other.state_dict())
    assert not torch.equal(before, fast(X)) and torch.equal(fast(X), other(X) + 100)
    assert not warnings()
    fast.load_state_dict(copy.deepcopy(net.state_dict()), assign=True)
    assert not ran_fast(fast, X)
    assert "weight shift was replaced since the net was optimised" in warnings()[0]


def test_frozen_weights_must_stay(net, warnings):
    fast = FastNet(net, [entry_of(net, X, run=plus_hundred, is_frozen=True)])
    assert ran_fast(fast, X)
    fast.to("cpu")
    assert ran_fast(fast, X) and len(fast.built_backends) == 1
    net.shift.add_(1)
    assert not ran_fast(fast, X)
    assert warnings() == [
        "Net: weight shift was updated, and its value is frozen in: the net runs as it was; give "
        "the net to passnet.optimize again"
    ]


def plus_two_hundred(outputs):
    return [output + 200 for output in outputs]


@pytest.fixture
def compared(net):
    """A net whose entry adds a hundred, and the way instead of it two hundred."""
    instead = entry_of(net, X, run=plus_two_hundred, engine="other")
    entry = entry_of(net, X, run=plus_hundred, is_frozen=True, compares=True, bound=99.0)
    return FastNet(net, [replace(entry, instead=instead)])


def test_other_values_run_the_way_instead(compared, net, warnings):
    assert ran_fast(compared, X) and not warnings()
    assert torch.equal(compared(X * 1e5), net(X * 1e5) + 200)
    assert warnings() == ["Net: input 1 holds NaN, or more than 99: other runs it"]
    assert ran_fast(compared, X) and compared.built_backends[0].instead is not None
    net.layers[0].weight.data.add_(1)
    assert torch.equal(compared(X), net(X) + 200) and torch.equal(compared(X), net(X) + 200)
    assert warnings() == [
        "Net: weight layers.0.weight has other values than those that were folded in: other runs "
        "it; give the net to passnet.optimize again"
    ]


def test_what_fits_neither_runs_the_net(compared, net, warnings):
    net.shift.data.add_(1)
    assert not ran_fast(compared, X[:1])
    assert "has shape" in warnings()[0]
    compared.to("cpu")
    assert torch.equal(compared(X), net(X) + 200)
    net.shift = torch.zeros(4)
    warnings()
    assert torch.equal(compared(X), net(X))
    assert "weight shift was replaced" in warnings()[0]


def test_in_training_the_net_runs(fast, net, warnings):
    assert not fast.training
    assert fast.train() is fast and net.training and net.layers[1].training and fast.training
    mean = net.layers[1].running_mean.clone()
    assert not torch.equal(fast(X), fast.eval()(X)) and not torch.equal(
        mean, net.layers[1].running_mean
    )
    assert warnings() == [
        "Net: the net is in training mode: the net runs as it was; put it back, or give the net to "
        "passnet.optimize again"
    ]
    assert ran_fast(fast, X) and not net.training


def test_gradients_are_the_nets(fast, warnings):
    with torch.enable_grad():
        fast(X).sum().backward()
        assert fast.shift is not None and fast.layers[0].weight.grad is not None
        assert "torch.no_grad() or torch.inference_mode()" in warnings()[0]
        x = X.clone().requires_grad_()
        fast(x).sum().backward()
        assert x.grad is not None


@pytest.mark.parametrize("convert", [lambda net: net.double(), lambda net: net.to(torch.float64)])
def test_conversion_drops_the_entries_and_says_so(fast, convert, warnings):
    assert fast.to("cpu") is fast and fast.float() is fast and ran_fast(fast, X) and not warnings()
    assert convert(fast) is fast and not fast.built_backends
    assert warnings() == [
        "Net: its weights were moved or converted: the net runs as it was; give it to "
        "passnet.optimize"
    ]
    assert fast(X.double()).dtype is torch.float64 and not ran_fast(fast, X.double())
    assert not warnings()


def test_conversion_of_a_buffer_alone_drops_the_entries_too():
    net = torch.nn.Module()
    net.register_buffer("shift", torch.ones(4))
    net.forward = torch.neg
    fast = FastNet(net, [entry_of(net, X)])
    assert not fast.double().built_backends


def test_a_copy_has_the_net_alone(fast, net, warnings):
    copied = copy.deepcopy(fast)
    assert type(copied) is Net and copied.layers[0].weight is not net.layers[0].weight
    assert torch.equal(copied(X), net(X))
    assert "backends are not copied: the net runs as it was; give it to passnet" in warnings()[0]
    assert copy.copy(fast).layers is net.layers and not warnings()
    pair = copy.deepcopy(torch.nn.ModuleList([fast, fast]))
    assert pair[0] is pair[1] and type(pair[0]) is Net


def test_pickled_it_is_the_net(fast, net):
    file = io.BytesIO()
    torch.save(fast, file)
    file.seek(0)
    for loaded in (pickle.loads(pickle.dumps(fast)), torch.load(file, weights_only=False)):
        assert type(loaded) is Net and torch.equal(loaded(X), net(X))
    function = pickle.loads(pickle.dumps(FastNet(torch.neg)))
    assert function is torch.neg


def test_it_may_be_a_module_of_another_net(fast, net, warnings):
    outer = torch.nn.Sequential(fast, torch.nn.Identity())
    as_it_was = torch.nn.Sequential(net, torch.nn.Identity())
    assert list(outer.state_dict()) == list(as_it_was.state_dict())
    assert list(outer.named_modules())[2:-1] == list(as_it_was.named_modules())[2:-1]
    assert torch.equal(outer(X), as_it_was(X) + 100)
    outer.train()
    assert net.layers[1].training
    outer.eval()
    other = Net().eval()
    outer.load_state_dict(torch.nn.Sequential(other).state_dict())
    assert torch.equal(outer(X), other(X) + 100) and not warnings()
    outer.double()
    assert not fast.built_backends and net.shift.dtype is torch.float64


def test_autocast_modes_and_transforms_run_the_net(fast, net, warnings):
    with torch.autocast("cpu"):
        assert torch.equal(fast(X), net(X))
    with FlopCounterMode(display=False):
        assert torch.equal(fast(X), net(X))
    assert torch.allclose(torch.vmap(fast)(torch.stack([X, X]))[0], net(X), atol=1e-5)
    assert torch.func.jvp(fast, (X,), (X,))[1].abs().sum() > 0
    with torch.inference_mode():
        assert ran_fast(fast, X)
    assert [text.split(":")[1] for text in warnings()] == [
        " autocast is on",
        " a mode, a default device, a trace or a transform of torch is active",
    ]
    swapped = {"shift": torch.zeros(4)}
    torch.testing.assert_close(torch.func.functional_call(fast, swapped, (X,)), net(X) - 1)
    assert ran_fast(fast, X)


def test_traced_within_another_net_it_is_the_net(fast, net):
    outer = torch.nn.Sequential(fast, torch.nn.Identity())
    torch._dynamo.reset()
    compiled = torch.compile(outer, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), net(X)) and ran_fast(fast, X)
    for strict in (False, True):
        program = torch.export.export(outer, (X,), strict=strict)
        assert torch.equal(program.module()(X), net(X)), strict
        assert set(program.state_dict) <= set(outer.state_dict()), strict
    traced = torch.jit.trace(fast, X, check_trace=False)
    assert torch.allclose(traced(X), net(X))


def test_hooks_are_the_nets_which_then_runs(fast, net, warnings):
    seen = []
    handle = fast.register_forward_hook(lambda *given: seen.append(given))
    assert torch.equal(fast(X), seen[0][2]) and torch.equal(seen[0][2], net(X)) and len(seen) == 2
    assert seen[0][0] is fast and seen[1][0] is net
    assert "a hook of the net was added" in warnings()[0]
    handle.remove()
    assert ran_fast(fast, X) and len(seen) == 2


def test_a_second_thread_runs_the_net_meanwhile(net, warnings):
    entered, leave = threading.Event(), threading.Event()

    def wait(outputs):
        entered.set()
        assert leave.wait(10)
        return plus_hundred(outputs)

    entry = entry_of(net, X, run=wait)
    fast = FastNet(net, [entry])
    results = []

    def call():
        with torch.no_grad():
            results.append(fast(X))

    thread = threading.Thread(target=call)
    thread.start()
    assert entered.wait(10)
    assert torch.equal(fast(X), net(X))
    leave.set()
    thread.join()
    assert torch.equal(results[0], net(X) + 100) and ran_fast(fast, X)
    assert ["another thread" in text for text in warnings()] == [True]


def test_many_threads_get_what_one_gets(fast, net):
    inputs = [torch.randn(3, 4) for _ in range(8)]
    wanted = [net(x) for x in inputs]
    wrong = []

    def call(number):
        with torch.no_grad():
            for _ in range(100):
                got = fast(inputs[number])
                if not any(torch.equal(got, wanted[number] + each) for each in (0, 100)):
                    wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_where_an_engine_fails_the_net_runs(net, warnings):
    def fail(outputs):
        raise RuntimeError("no such kernel\nframe #0: and where in C++")

    fast = FastNet(net, [entry_of(net, X, run=fail, engine="aot")])
    for _ in range(2):
        assert torch.equal(fast(X), net(X))
    assert warnings() == [
        "Net: aot failed with RuntimeError: no such kernel: the net runs as it was"
    ]


def test_without_warnings_of_misfits_a_failure_is_told_all_the_same(net, warnings):
    def fail(outputs):
        raise RuntimeError("no such kernel")

    fast = FastNet(net, [entry_of(net, X, run=fail, engine="aot")], warns=False)
    assert torch.equal(fast(X[:2]), net(X[:2])) and not warnings()
    assert torch.equal(fast(X), net(X))
    assert warnings() == [
        "Net: aot failed with RuntimeError: no such kernel: the net runs as it was"
    ]


def test_it_prints_its_entries(fast, net):
    assert repr(fast) == f"FastNet with 1 backend:\n  by hand: float32[3, 4]\nof {net!r}"
    assert repr(FastNet(net)) == f"FastNet without a backend, of {net!r}"


def test_an_entry_of_another_net_is_refused(net):
    with pytest.raises(InputError, match="is not the net's; optimise this net anew"):
        FastNet(Net().eval(), [entry_of(net, X)])
