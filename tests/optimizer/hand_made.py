"""Nets for the tests of calls, and entries that are made by hand: no engine is built."""

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from passnet.optimizer.call.net_call import BuiltBackend
from passnet.optimizer.call.values import flattened


class Net(torch.nn.Module):
    """Parameters, a buffer, a submodule that does another thing in training, an attribute."""

    def __init__(self):
        super().__init__()
        self.scale = 0.5
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, y=None, factor=1.0):
        out = self.layers(x) * self.scale + self.shift
        return out * factor if y is None else (out * factor, y - out)


def entry_of(
    net,
    *args,
    run=None,
    is_frozen=False,
    engine="by hand",
    compares=False,
    bound=None,
    index_bounds=(),
    **kwargs,
):
    """An entry that runs the net itself, or `run`, which takes its outputs, flat."""
    leaves, args_spec = tree_flatten((args, kwargs))
    with torch.no_grad():
        structure = flattened(net(*args, **kwargs))[1]

    def run_net(tensors):
        remaining = iter(tensors)
        filled = [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        new_args, new_kwargs = tree_unflatten(filled, args_spec)
        with torch.no_grad():
            outputs = flattened(net(*new_args, **new_kwargs))[0]
        return run(outputs) if run else outputs

    weights = {}
    if isinstance(net, torch.nn.Module):
        weights |= dict(net.named_parameters(remove_duplicate=False))
        weights |= dict(net.named_buffers(remove_duplicate=False))
    return BuiltBackend(
        engine,
        args_spec,
        tuple(leaves),
        run_net,
        structure,
        weights,
        is_frozen,
        None,
        compares,
        bound,
        index_bounds,
    )


def plus_hundred(outputs):
    """What shows that an entry ran, and not the net."""
    return [output + 100 for output in outputs]
