"""Which values a call writes into, besides its first argument."""

import inspect

import pytest
import torch

from passnet.graph.fx.targets import ALLOWED, is_allowed
from passnet.graph.spec import Op, Ref
from passnet.graph.values.effects import written_values

_SWITCHES = {"training": True, "use_input_stats": True, "max_norm": 1.0}
_STATE = {"running_mean", "running_var"}


def writers() -> dict[str, list[str]]:
    """Every allowed function that keeps statistics or renorms rows, with its parameters."""
    names: dict[str, list[str]] = {}
    for target in sorted(ALLOWED):
        path, _, name = target.rpartition(".")
        function = getattr(torch.nn.functional, name, None)
        if path == "torch.nn.functional" and inspect.isfunction(function):
            names[target] = list(inspect.signature(function).parameters)
    for schema in torch._C._jit_get_all_schemas():
        library, name = schema.name.split("::")
        overload = schema.overload_name or "default"
        arguments = [argument.name for argument in schema.arguments]
        if library != "aten" or "out" in overload:
            continue
        names[f"torch.ops.aten.{name}.{overload}"] = arguments
        if f"torch.{name}" in ALLOWED:
            names[f"torch.{name}"] = arguments
    return {
        target: arguments
        for target, arguments in names.items()
        if is_allowed(target) and set(arguments) & _SWITCHES.keys()
        if set(arguments) & {*_STATE, "max_norm"} and "backward" not in target
    }


@pytest.mark.parametrize("target", writers())
def test_a_call_that_keeps_statistics_or_renorms_rows_writes_them(target):
    arguments = writers()[target]
    args = tuple(_SWITCHES.get(name) or Ref(name) for name in arguments)
    expected = _STATE if "max_norm" not in arguments else {"weight"}
    assert set(written_values(Op("y", target, args))) == expected
