"""Weights of large nets in a file, which children map."""

from pathlib import Path

import pytest
import torch

from passnet.optimizer.backends.backend import Backend, build_backend
from passnet.optimizer.backends.in_child import PROGRAM_FILE, read_program, save_program
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.fast_net import copied, fast_net
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.call.weight_file import LARGE_BYTES, WeightFile
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.test_memory import anonymous_bytes


class ManyForms(torch.nn.Module):
    """A net with weights of many forms: tied, transposed, a part of a storage, whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.tied = torch.nn.Linear(64, 64)
        self.tied.weight = self.first.weight
        self.turned = torch.nn.Parameter(torch.randn(32, 64).t(), requires_grad=False)
        whole = torch.randn(3, 64, 64)
        self.register_buffer("part", whole[1])
        self.register_buffer("whole", whole, persistent=False)
        self.register_buffer("table", torch.arange(64, dtype=torch.int32))
        self.small = torch.nn.Parameter(torch.randn(64, 64).bfloat16())
        self.empty = torch.nn.Parameter(torch.empty(0, 64))
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.tied(torch.relu(self.first(x))) @ self.part + self.table
        return (x @ self.whole[2] + x @ self.small.float()) @ self.turned


def mapped(folder: Path) -> tuple[ManyForms, ManyForms, WeightFile]:
    torch.manual_seed(0)
    net = ManyForms()
    net_copy, _, file = copied(net, [], folder / "weights.bin", large_bytes=0)
    assert isinstance(net_copy, ManyForms) and file is not None
    file.write()
    return net, net_copy, file


def test_the_file_holds_weights_of_every_form(tmp_path: Path) -> None:
    net, net_copy, file = mapped(tmp_path)
    own = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    for name, weight in {
        **dict(net_copy.named_parameters()),
        **dict(net_copy.named_buffers()),
    }.items():
        assert type(weight) is type(own[name]) and torch.equal(weight, own[name])
        assert weight.stride() == own[name].stride() and weight.dtype is own[name].dtype
        assert weight.requires_grad == own[name].requires_grad
        place = file.place(weight)
        if weight.numel():
            assert place is not None and file.place(own[name]) is None
            assert torch.equal(WeightFile.mapped(file.path).weight(place), weight)
    assert net_copy.tied.weight is net_copy.first.weight
    shared = net_copy.part.untyped_storage().data_ptr()
    assert shared == net_copy.whole.untyped_storage().data_ptr()


def test_writes_into_the_copy_reach_neither_the_net_nor_the_file(tmp_path: Path) -> None:
    net, net_copy, file = mapped(tmp_path)
    before, x = file.path.read_bytes(), torch.randn(2, 64)
    expected = net(x)
    with torch.no_grad():
        net_copy.first.weight.add_(1)
        WeightFile.mapped(file.path).storage(0, 64).fill_(0)
    assert not torch.equal(net_copy(x), expected) and torch.equal(net(x), expected)
    with file.away():
        pass
    assert torch.equal(net_copy.first.weight, net.first.weight + 1)  # only equal bytes go
    assert file.path.read_bytes() == before


def test_the_memory_of_weights_is_free_while_they_are_away(tmp_path: Path) -> None:
    net = torch.nn.Linear(4096, 4096, bias=False)
    net_copy, _, file = copied(net, [], tmp_path / "weights.bin", large_bytes=0)
    assert isinstance(net_copy, torch.nn.Linear) and file is not None
    file.write()
    address, before = net_copy.weight.data_ptr(), anonymous_bytes()
    with pytest.raises(KeyboardInterrupt), file.away():
        assert before - anonymous_bytes() > 0.75 * net.weight.nbytes
        raise KeyboardInterrupt
    assert torch.equal(net_copy.weight, net.weight) and net_copy.weight.data_ptr() == address


def test_a_child_maps_the_weights_of_a_program(tmp_path: Path) -> None:
    net, net_copy, file = mapped(tmp_path)
    file.path.write_bytes(bytes(file.path.stat().st_size))  # of a run that was killed
    file.is_written = False
    call = NetCall(net_copy, (torch.randn(2, 64),), {}, file)
    save_program(call, tmp_path)
    assert torch.equal(net_copy(*call.args), call.outputs[0])  # the program is whole again
    weights = sum(weight.nbytes for weight in call.exported_flat.state_dict.values())
    size = (tmp_path / PROGRAM_FILE).stat().st_size
    program, tensors = read_program(tmp_path)
    whole, path = tmp_path / "whole.pt2", tmp_path / PROGRAM_FILE
    torch.export.save(call.exported_flat, whole)
    assert whole.stat().st_size - path.stat().st_size > weights // 2 and size > 0
    [output] = program.module()(*tensors)
    assert torch.equal(output, net(*call.args))


@pytest.mark.parametrize("name", ["aot", "aot_frozen"])
def test_packages_are_built_of_mapped_weights(name: str, tmp_path: Path) -> None:
    net, net_copy, file = mapped(tmp_path)
    call = NetCall(net_copy, (torch.randn(2, 64),), {}, file)
    built = build_backend(name, BACKENDS[name], call, tmp_path / name)
    x = torch.randn(2, 64)
    assert torch.allclose(built([x]), net(x), rtol=1e-4, atol=1e-3)
    fast = fast_net(net, [built], warns=True)
    file.path.unlink()
    with torch.no_grad():
        assert torch.allclose(fast(x), net(x), rtol=1e-4, atol=1e-3)
        if name == "aot":
            net.first.weight.mul_(2)
            assert torch.allclose(fast(x), net(x), rtol=1e-4, atol=1e-3)


class Large(torch.nn.Module):
    """A net with a large weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(LARGE_BYTES // 4))
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * self.weight[0]


def folding(net_call: NetCall, folder: Path, name: str) -> BuiltBackend:
    return net_call.built(name, lambda tensors: [torch.relu(tensors[0])], is_frozen=True)


def test_of_a_large_net_one_signature_holds_folded_weights(tmp_path: Path) -> None:
    backends = {
        "eager": BACKENDS["eager"],
        "folds": Backend("it", folding, folding, is_frozen=True),
    }
    settings = OptimizeSettings(backends=("folds",), seconds=0.02)
    calls = [((torch.randn(shape),), {}) for shape in ((4,), (1, 5))]
    net = Large()
    made = optimize_net(net, calls, settings, tmp_path, backends=backends, serves="folds")
    first, second = (
        {record.engine: record for record in form.engines} for form in made.record.forms
    )
    assert first["folds"].status == "ok" and second["folds"].status == "untried"
    assert "another input signature holds folded weights" in str(second["folds"].reason)
    assert not (tmp_path / "weights.bin").exists()
    small = optimize_net(torch.nn.ReLU().eval(), calls, settings, backends=backends, serves="folds")
    assert [form.chosen for form in small.record.forms] == ["folds", "folds"]
