"""Children, shares of the budget, contests in time, and the disk of a build."""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from passnet.optimizer.backends.backend import Backend, build_backend
from passnet.optimizer.backends.in_child import MakeFile
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.call.weight_file import LARGE_BYTES
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.record import BackendRecord
from passnet.optimizer.settings import OptimizeSettings
from passnet.optimizer.trial import Budget


def slow_net(x: torch.Tensor) -> torch.Tensor:
    time.sleep(0.002)
    return torch.relu(x)


def call() -> NetCall:
    return NetCall(slow_net, (torch.randn(4),), {})


def quick(net_call: NetCall, folder: Path, name: str) -> BuiltBackend:
    return net_call.built(name, lambda tensors: [torch.relu(tensors[0])])


def in_child(does: MakeFile, is_inductor: bool = False) -> Backend:
    """A right and quick backend, for which a child does something."""

    def make(net_call: NetCall, folder: Path, name: str) -> MakeFile:
        return does

    return Backend("Foreign", quick, quick, is_inductor=is_inductor, make=make)


CRASHES: Mapping[str, MakeFile] = {
    "SIGSEGV": partial(signal.raise_signal, signal.SIGSEGV),
    "SIGABRT": os.abort,
}


class Large(torch.nn.Module):
    """The same net with many weights, of which none is used."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(LARGE_BYTES // 4))
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return slow_net(x)


def records(
    backends: Mapping[str, Backend],
    budget_s: float = 600.0,
    net: Callable[..., torch.Tensor] = slow_net,
) -> dict[str, BackendRecord]:
    """Optimise a net of two milliseconds with made-up backends."""
    settings = OptimizeSettings(backends=tuple(backends), seconds=0.02, budget_s=budget_s)
    known = {"eager": BACKENDS["eager"], **backends}
    [form] = optimize_net(net, [((torch.randn(4),), {})], settings, backends=known).record.forms
    return {record.engine: record for record in form.engines}


def test_compilers_that_end_their_process_or_hang_are_left_and_the_next_one_is_tried() -> None:
    backends = {name: in_child(crash) for name, crash in CRASHES.items()}
    backends["raises"] = in_child(partial(int, "x"))
    backends["hangs"] = in_child(partial(time.sleep, 1e5))
    found = records({**backends, "right": in_child(int)}, budget_s=60)
    for name in CRASHES:
        assert found[name].status == "refused"
        assert found[name].reason == f"Foreign ended its process by {name}"
    assert str(found["raises"].reason).startswith("Foreign: ValueError: invalid literal")
    assert found["hangs"].status == "untried"
    assert "Foreign was stopped, as its share" in str(found["hangs"].reason)
    assert found["right"].status == "ok"


def test_what_a_child_prints_is_in_the_folder_and_not_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    build_backend("a", in_child(partial(os.system, "echo noise >&2")), call(), tmp_path / "a")
    assert (tmp_path / "a" / "log.txt").read_text() == "noise"
    assert capfd.readouterr() == ("", "")


def test_packages_are_not_called_on_arguments_that_eager_torch_refuses(tmp_path: Path) -> None:
    for name, backend in {"own": Backend("own", quick, quick), "foreign": in_child(int)}.items():
        assert not build_backend(name, backend, call(), tmp_path / name).ends_process
    package = in_child(int, is_inductor=True)
    assert build_backend("package", package, call(), tmp_path / "package").ends_process


def test_a_backend_gets_a_share_of_the_time_that_is_left() -> None:
    now = [0.0]
    budget = Budget(seconds=100, deadline=100, timed_s=2, clock=lambda: now[0])
    assert budget.left_s(1.0) == 84 and budget.left_s(0.5) == 45  # without that for timing
    budget.compared_s = 9
    assert budget.left_s(1.0) == 75 and budget.left_s(0.5) == 45
    now[0] = 70
    assert budget.left_s(1.0) == budget.left_s(0.5) == 5
    assert budget.objection(in_child(int), 0.5) is None
    now[0] = 75
    assert budget.objection(in_child(int), 0.5) == "the budget was spent"


def test_no_build_by_inductor_begins_with_less_time_than_one_that_was_stopped() -> None:
    budget = Budget(seconds=100, deadline=100, timed_s=0, clock=lambda: 0.0)
    inductor, other = in_child(int, is_inductor=True), in_child(int)
    assert budget.share_of(inductor, False) == 0.8 and budget.share_of(other, False) == 0.5
    assert budget.share_of(other, True) == 1.0
    budget.compiled_s = budget.stopped_s = 30.0
    assert budget.share_of(inductor, False) == 0.5
    assert budget.objection(inductor, 0.5) is None and budget.objection(other, 0.2) is None
    sentence = "a build by Inductor was stopped after 30 s"
    assert budget.objection(inductor, 0.2) == sentence


def test_what_cannot_be_stopped_begins_only_with_time_to_spare() -> None:
    now = [0.0]
    budget = Budget(seconds=100, deadline=100, timed_s=0, clock=lambda: now[0])
    unstoppable = Backend("Inductor", quick, quick, is_inductor=True)
    now[0] = 66
    assert budget.objection(unstoppable, 1.0) is None
    now[0] = 67
    sentence = "Inductor cannot be stopped and may take 33 s; 33 s are left"
    assert budget.objection(unstoppable, 1.0) == sentence
    assert budget.objection(in_child(int, is_inductor=True), 1.0) is None
    budget.compiled_s = 20  # of an earlier build by Inductor
    assert budget.objection(unstoppable, 1.0) is None
    budget.compiled_s = 40
    assert "may take 60 s" in str(budget.objection(unstoppable, 1.0))


def test_cheap_backends_come_first_and_autotuning_last() -> None:
    installed = {name: replace(backend, packages=()) for name, backend in BACKENDS.items()}
    names = OptimizeSettings().tried(installed)
    cheap = ("eager", "graph", "onnxruntime_frozen", "openvino_frozen")
    assert names == (*cheap, "aot_packed", "aot", "aot_frozen", "compile", "aot_autotune_frozen")


def test_weights_that_will_not_change_are_packed_without_a_watch() -> None:
    free, frozen = (OptimizeSettings(freeze=freeze, tolerance=0.1) for freeze in (False, True))

    def names(settings: OptimizeSettings, may_fold: bool) -> set[str]:
        return {
            name
            for name in settings.tried(BACKENDS)
            if not settings.leaves_out(BACKENDS[name], may_fold)
        }

    watched = {"aot_packed", "aot_int8", "aot_int4"}
    constant = {f"{name}_frozen" for name in watched}
    assert names(free, True) & (watched | constant) == watched
    assert names(frozen, True) & (watched | constant) == constant
    assert watched <= names(frozen, False), "where other signatures hold folded weights"
    named = OptimizeSettings(freeze=True, backends=("aot_packed",))
    assert not named.leaves_out(BACKENDS["aot_packed"], True)


@pytest.mark.parametrize(
    ("make", "num_alive"),
    [(lambda: slow_net, 3), (Large, 2)],  # the fastest, the one for all values, the challenger
    ids=["small", "large"],
)
def test_only_the_fastest_and_one_for_all_values_stay_alive(
    make: Callable[[], Callable[..., torch.Tensor]], num_alive: int
) -> None:
    alive: set[str] = set()
    most: list[int] = []

    class Held:
        """The weights of a built backend."""

        def __init__(self, name: str) -> None:
            self.name = name
            alive.add(name)
            most.append(len(alive))

        def __del__(self) -> None:
            alive.discard(self.name)

    def backend(delay_s: float, is_frozen: bool) -> Backend:
        def build(net_call: NetCall, folder: Path, name: str) -> BuiltBackend:
            held = Held(name)

            def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
                time.sleep(delay_s)
                return [torch.relu(tensors[0])] if held else []

            return net_call.built(name, run, is_frozen)

        return Backend("made up", build, build, is_frozen=is_frozen)

    speeds = {"a": 0.0012, "b": 0.0008, "c": 0.001, "d": 0.0004, "e": 0.0011, "f": 0.0}
    backends = {name: backend(delay_s, name != "c") for name, delay_s in speeds.items()}
    found = records(backends, net=make())
    assert max(most) == num_alive
    for record in found.values():
        assert record.status == "ok" and record.speedup is not None
        if record.engine != "eager":
            assert record.ms is not None and record.speedup > 1
    assert max(found.values(), key=lambda record: record.speedup or 0).engine == "f"


def test_the_figures_of_a_loser_are_those_of_its_last_rounds() -> None:
    speeds = {"first": [0.0], "second": [0.0]}

    def backend(name: str) -> Backend:
        def build(net_call: NetCall, folder: Path, _: str) -> BuiltBackend:
            if name == "second":
                speeds["first"][0] = 0.0015  # the machine is slower from here on

            def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
                time.sleep(speeds[name][0])
                return [torch.relu(tensors[0])]

            return net_call.built(name, run)

        return Backend("made up", build, build)

    found = records({name: backend(name) for name in speeds})
    assert (found["first"].speedup or 0) < 2 < (found["second"].speedup or 0)


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files may have a megabyte, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_a_folder_without_room_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File too large") as found:
        build_backend("a", in_child(int), call(), tmp_path / "a")
    assert str(found.value.filename).startswith(str(tmp_path))


def test_a_full_disk_is_no_refusal_of_a_backend(tmp_path: Path) -> None:
    def fills(net_call: NetCall, folder: Path, name: str) -> BuiltBackend:
        Path("/dev/full").write_text("weights")
        return quick(net_call, folder, name)

    with pytest.raises(OSError, match="No space left on device"):
        records({"fills": Backend("fills", fills, fills)})
