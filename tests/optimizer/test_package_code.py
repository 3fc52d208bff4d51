"""Code of a net that a folder is made for: other code is refused, the same loads elsewhere."""

import enum
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from passnet.api import optimize_calls
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.errors import InputError
from passnet.optimizer.call.attributes import code_of, plain_attributes
from passnet.optimizer.package import NET_FILE, load
from passnet.optimizer.settings import OptimizeSettings

X = torch.randn(4, 8)
QUICK = OptimizeSettings(backends=("graph",), seconds=0.02)


class Same(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0


class Capped(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=6.0)


class Number(float):
    """A number of a class of its own."""


class Settings:
    cap = 1e9


LIMITS = {"cap": 1e9}


def limited(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(max=LIMITS["cap"])


class Net(torch.nn.Module):
    """A net whose code is held in many ways."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.inner = torch.nn.Linear(8, 8), Same()
        self.act, self.acts = functional.relu, [functional.relu]
        self.names, self.limit, self.config = {"a", "b"}, Number(1e9), Settings()
        self.part = functools.partial(torch.clamp, max=1e9)
        self.dtype = torch.float32

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(self.acts[0](self.act(self.linear(x))))
        y = y.clamp(max=6.0) if "clip" in self.names or self.dtype is torch.half else y
        y = self.part(y).clamp(max=self.config.cap)
        return self.bounded(limited(y.clamp(max=float(self.limit))))

    def bounded(self, x: torch.Tensor) -> torch.Tensor:
        return x


def net_of() -> Any:
    torch.manual_seed(0)
    return Net().eval()


class Cap:
    """A hook that is an object."""

    def __init__(self, most: float) -> None:
        self.most = most

    def __call__(self, module: torch.nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        return output.clamp(max=self.most)

    def cap(self, module: torch.nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        return output.clamp(max=self.most)


def capped(most: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: functional.relu(x).clamp(max=most)


def _of_instance(net: Any) -> None:
    former = net.forward
    net.forward = lambda x: former(x).clamp(max=6.0)


CHANGES: dict[str, Callable[[Any], object]] = {
    r"act of this net is function relu6 .* was function relu ": (
        lambda net: setattr(net, "act", functional.relu6)
    ),
    "act of this net is function capped": lambda net: setattr(net, "act", capped(6.0)),
    r"acts\[0\] of this net is function relu6": (
        lambda net: net.acts.__setitem__(0, functional.relu6)
    ),
    r"linear\._forward_hooks of this net is .*lambda": (
        lambda net: net.linear.register_forward_hook(lambda module, args, y: y.clamp(max=6.0))
    ),
    r"_forward_pre_hooks of this net is": (
        lambda net: net.register_forward_pre_hook(lambda module, args: (args[0].clamp(max=6.0),))
    ),
    r"linear\._forward_hooks of this net is class Cap": (
        lambda net: net.linear.register_forward_hook(Cap(6.0))
    ),
    "inner.__class__ of this net is class Capped, and was class Same": (
        lambda net: setattr(net, "inner", Capped().eval())
    ),
    r"names of this net is \{'a', 'b', 'clip'\}, and was \{'a', 'b'\}": (
        lambda net: net.names.add("clip")
    ),
    "limit of this net is class Number 6.0": lambda net: setattr(net, "limit", Number(6.0)),
    "dtype of this net is torch.float16": lambda net: setattr(net, "dtype", torch.float16),
    "forward of this net is function _of_instance": _of_instance,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("code") / "out"
    optimize_calls(net_of(), [((X,), {})], QUICK, out)
    return out


@pytest.mark.parametrize("says", CHANGES)
def test_a_net_of_other_code_is_refused(folder: Path, says: str) -> None:
    net = net_of()
    CHANGES[says](net)
    with pytest.raises(InputError, match=says):
        load(folder, net)


def test_other_classes_and_globals_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "cap", 6.0)
    with pytest.raises(InputError, match=r"class Settings\.cap of this net is 6\.0"):
        load(folder, net_of())
    monkeypatch.undo()
    monkeypatch.setattr(Net, "bounded", Capped.forward)
    with pytest.raises(InputError, match=r"class Net\.bounded of this net is function Capped"):
        load(folder, net_of())
    monkeypatch.undo()
    monkeypatch.setitem(LIMITS, "cap", 6.0)
    with pytest.raises(InputError, match=r"class Net\.forward of this net is"):
        load(folder, net_of())
    monkeypatch.undo()
    torch.testing.assert_close(load(folder, net_of())(X), net_of()(X))


def keeping(value: Any) -> Callable[[Any], Any]:
    """Return a function that keeps a value in its closure."""
    return lambda x: (value, x)


def with_attribute(value: float) -> Callable[[Any], Any]:
    function = keeping(1)
    vars(function)["scale"] = value
    return function


One = enum.Enum("Mode", {"FAST": 1})
Other = enum.Enum("Mode", {"FAST": 2})


DIFFERENT: list[tuple[Any, Any]] = [
    (capped(1.0), capped(2.0)),
    (lambda x: x + 1, lambda x: x + 2),
    (torch.no_grad()(lambda x: x + 1), torch.no_grad()(lambda x: x + 2)),
    (torch.compiler.disable(lambda x: x + 1), torch.compiler.disable(lambda x: x + 2)),
    (functools.partial(torch.clamp, max=functional.relu), functools.partial(torch.clamp, max=3)),
    ({1.0, 2}, {1.0, 3}),
    ((functional.relu, 1), (functional.relu6, 1)),
    (Cap(1.0).cap, Cap(2.0).cap),
    (functools.lru_cache(functional.relu), functools.lru_cache(functional.relu6)),
    (torch.relu, torch.tanh),
    (keeping({"a": functional.relu}), keeping({"a": functional.relu6})),
    (keeping([{"a": [1]}]), keeping([{"a": [2]}])),
    (keeping(Cap(1.0)), keeping(Cap(2.0))),
    (with_attribute(1.0), with_attribute(2.0)),
    (One.FAST, Other.FAST),  # pyrefly: ignore
    (np.float64(1.0), np.float64(2.0)),
    (torch.ops.aten.relu.default, torch.ops.aten.tanh.default),
    (torch.nn.ReLU, torch.nn.Tanh),
    (torch.jit.script(Capped()), torch.jit.script(Same())),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_of_other_code_have_other_texts(one: Any, other: Any) -> None:
    nets = [torch.nn.Identity() for _ in range(3)]
    for net, value in zip(nets, (one, one, other), strict=True):
        net.value = value
    first, again, changed = map(code_of, nets)
    assert first == again != changed


def test_keys_and_members_that_print_their_address_do_not_count() -> None:
    nets = [torch.nn.Identity() for _ in range(2)]
    for net in nets:
        net.table, net.caps = {Cap(1.0): 3, keeping: 4}, {Cap(n) for n in range(9)}
    assert code_of(nets[0]) == code_of(nets[1])
    assert plain_attributes(nets[0]) == plain_attributes(nets[1])


def test_globals_with_the_name_of_an_attribute_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_of(net_of())
    monkeypatch.setitem(globals(), "inner", 3)
    assert code_of(net_of()) == before


def test_a_model_of_transformers_is_the_same_from_its_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import_with_torchvision("transformers")
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
        num_attention_heads=4,
    )  # fmt: skip
    made = transformers.LlamaForCausalLM(config).eval()
    before = plain_attributes(made), code_of(made)
    made(torch.ones(1, 2, dtype=torch.long), output_hidden_states=True)
    made.save_pretrained(tmp_path)
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    for net in (made, loaded):
        assert (plain_attributes(net), code_of(net)) == before


def test_a_folder_without_a_record_of_code_is_refused(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        if file.name != NET_FILE:
            (tmp_path / file.name).symlink_to(file)
    with pytest.raises(InputError, match="is of an earlier passnet.*optimise the net again"):
        load(tmp_path, net_of())


PROGRAM = """
    import sys
    import torch
    import passnet
    from passnet.data.capture.mismatched_wheels import import_with_torchvision

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.names = torch.nn.Linear(8, 8), {"a", "b", "c", "clip"}
            self.last = torch.no_grad()(lambda x: x + 1)
            self.act = lambda x: x.relu() if "b" in {"a", "b", "c"} else x
            self.linear.register_forward_hook(lambda module, args, y: y * 2)

        def forward(self, x):
            return self.last(self.act(self.linear(x)))

    def made(name):
        torch.manual_seed(0)
        if name == "own":
            return Own().eval(), torch.ones(1, 8)
        if name == "exported":
            net = torch.nn.Sequential(torch.nn.Linear(8, 8)).eval()
            return torch.export.export(net, (torch.ones(1, 8),)).module(), torch.ones(1, 8)
        if name == "transformers":
            them = import_with_torchvision("transformers")
            config = them.BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=32, vocab_size=50)
            return them.BertModel(config).eval(), torch.ones(1, 4, dtype=torch.long)
        if name == "torchvision":
            models = import_with_torchvision("torchvision.models")
            return models.resnet18().eval(), torch.ones(1, 3, 32, 32)
        made = import_with_torchvision("timm").create_model("resnet10t")
        return made.eval(), torch.ones(1, 3, 32, 32)

    for name in sys.argv[3:]:
        net, x = made(name)
        out = f"{sys.argv[2]}/{name}"
        if sys.argv[1] == "save":
            passnet.optimize(net, x, backends="graph", seconds=0.02, out=out)
        else:
            with torch.no_grad():
                fast = passnet.load(out, net)
                right, found = net(x), fast(x)
            if not isinstance(right, torch.Tensor):
                right, found = right[0], found[0]
            torch.testing.assert_close(found, right)
        print(name)
"""


def _run(folder: Path, what: str, seed: str, *names: str) -> str:
    file = folder / "program.py"
    file.write_text(dedent(PROGRAM))
    command = [sys.executable, "-W", "ignore", str(file), what, str(folder), *names]
    seeded = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=seeded)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("names", [("own", "exported"), ("transformers", "timm", "torchvision")])
def test_the_same_code_loads_in_another_process(names: tuple[str, ...], tmp_path: Path) -> None:
    if not all(map(find_spec, {*names} - {"own", "exported"})):
        pytest.skip("without these packages")
    assert _run(tmp_path, "save", "1", *names).split() == [*names]
    assert _run(tmp_path, "load", "77", *names).split() == [*names]


def test_a_scripted_net_is_as_it_was_after_its_code_was_recorded() -> None:
    scripted = torch.jit.freeze(torch.jit.script(Same().eval()))
    names = {*vars(scripted)}
    assert code_of(scripted) and {*vars(scripted)} == names
