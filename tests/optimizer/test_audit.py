"""The audit of `passnet.optimize` finds what it says it finds, and its corpus is right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from passnet.cli.commands import main
from passnet.core.jobs.process import JobLimits
from passnet.core.jobs.run_plan import RunPlan
from passnet.errors import InputError
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.settings import OptimizeSettings
from passnet_audit.nets.audit import audit_case, wrongs
from passnet_audit.nets.case import NetCase, find_cases, read_case
from passnet_audit.nets.outcome import (
    DEFAULT,
    HARMLESS,
    CaseOutcome,
    Outcome,
    complaints,
)
from passnet_audit.nets.run import choices, run_audit
from passnet_audit.nets.tables import audit_lines, audit_table
from tests.conftest import ROOT

NETS = ROOT / "tests" / "nets"
QUICK = OptimizeSettings(threads=1, seconds=0.02)
LIMITS = JobLimits(120.0)

MAGIC = 12.4375
"""A value that the audited calls have, and no other arguments."""

Run = Callable[[NetCall, list[torch.Tensor]], list[torch.Tensor]]


class Product(nn.Module):
    """A product that refuses one value."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if (x == -MAGIC).any():
            raise ValueError("a value that the net refuses")
        y = self.linear(x)
        return y, 2 * y


def magic(value: float = MAGIC) -> tuple[torch.Tensor]:
    x = torch.randn(3, 4)
    x[0, 0] = value
    return (x,)


def case(make: Callable[[], nn.Module] = lambda: Product().eval(), **parts) -> NetCase:
    """A case with the magic value in calls that the example does not show."""

    def calls():
        yield "usual", (torch.randn(3, 4),)
        yield "magic", magic()
        yield "refused", magic(-MAGIC)
        yield "magic again", magic()

    return NetCase(Path("case.py"), "form", make, lambda: (torch.randn(3, 4),), calls, **parts)


def backend(run: Run | None = None, does: Callable[[], object] = lambda: None) -> Backend:
    """A backend that runs the net eagerly, and `run` for the magic value; `does` as it is built."""

    def build(call: NetCall, folder: Path, name: str) -> BuiltBackend:
        does()

        def outputs(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            if run is not None and (tensors[0].abs() == MAGIC).any():
                return run(call, tensors)
            return call.eager_outputs(call.filled(tensors))

        return call.built(name, outputs)

    return Backend("for a test", build, build)


def audited(net_case: NetCase, own: Backend) -> CaseOutcome:
    return audit_case(net_case, "own", QUICK, {**BACKENDS, "own": own})


def right(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return call.eager_outputs(call.filled(tensors))


def test_a_backend_that_is_right_serves_fast_or_not() -> None:
    found = audited(case(), backend(right))
    assert (found.outcome, found.backend, found.reason) == ("served", "own", "")
    assert found.is_right


def test_a_backend_that_is_asked_for_alone_serves_as_the_optimiser_would() -> None:
    def turned(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [y.t().contiguous().t() for y in right(call, tensors)]

    def build(call: NetCall, folder: Path, name: str) -> BuiltBackend:
        return call.built(name, lambda tensors: turned(call, tensors))

    found = audited(case(), Backend("for a test", build, build))
    assert (found.outcome, found.backend, found.reason) == ("served", "own", "")


def moved(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    outputs = right(call, tensors)
    tensors[0].add_(1)
    return outputs


def argument(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    y, double = right(call, tensors)
    return [tensors[0].copy_(y), double]


def unrefused(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    refused = (tensors[0] == -MAGIC).any()
    return [torch.zeros(3, 4), torch.zeros(3, 4)] if refused else right(call, tensors)


def drawn(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    torch.rand(1)
    return right(call, tensors)


def threaded(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    torch.set_num_threads(torch.get_num_threads() + 1)
    return right(call, tensors)


KEPT: list[torch.Tensor] = []


def overwritten(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    outputs = right(call, tensors)
    for kept in KEPT:
        kept.zero_()
    KEPT[:] = outputs
    return outputs


WRONG: dict[str, tuple[Run, str]] = {
    "values": (lambda c, x: [y + 0.01 for y in right(c, x)], "magic: tensor 0 is off by"),
    "NaN": (lambda c, x: [y / 0 * 0 for y in right(c, x)], "is NaN in 12 places and not 0"),
    "a dtype": (lambda c, x: [y.half() for y in right(c, x)], "has dtype torch.float16"),
    "a shape": (lambda c, x: [y[:2] for y in right(c, x)], "has shape"),
    "strides": (lambda c, x: [y.t().contiguous().t() for y in right(c, x)], "has strides (1, 3)"),
    "shared memory": (lambda c, x: [right(c, x)[0]] * 2, "its tensors share memory otherwise"),
    "an argument's memory": (argument, "it returns memory of ['argument 0', 'nothing']"),
    "an argument": (moved, "its arguments: tensor 0 is off by"),
    "a random number": (drawn, "it changes torch's random generator, and the net does not"),
    "threads": (threaded, "it changes the number of threads, and the net does not"),
    "no error": (unrefused, "refused: it returns, and the net raises"),
    "overwritten": (overwritten, "magic again: it overwrites what it returned for magic"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_backend_that_is_wrong_on_a_later_call_is_found(name: str) -> None:
    run, sentence = WRONG[name]
    threads = torch.get_num_threads()
    try:
        found = audited(case(), backend(run))
    finally:
        torch.set_num_threads(threads)
        KEPT.clear()
    assert found.outcome == "wrong" and not found.is_right
    assert sentence in found.reason


class Stateful(Product):
    """A product that keeps a table from its first call, and may move its state later."""

    def __init__(self, moves: str = "") -> None:
        super().__init__()
        self.moves, self.table, self.last = moves, None, 0.0
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.table is None:
            self.table = torch.ones(4)
        is_magic = bool((x == MAGIC).any())
        if is_magic and self.moves == "last":
            self.last = float(x.sum())
        if is_magic and self.moves == "seen":
            self.seen += 1
        return super().forward(x)


@pytest.mark.parametrize(
    ("moves", "outcome", "reason"),
    [
        ("", "served", ""),
        ("last", "wrong", "magic: it leaves another last than the net"),
        ("seen", "wrong", "magic: it leaves other weights or buffers"),
    ],
)
def test_what_a_call_leaves_in_the_net_is_compared(moves: str, outcome: str, reason: str) -> None:
    def unmoved(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        y = call.net.linear(tensors[0])
        return right(call, tensors) if (tensors[0] == -MAGIC).any() else [y, 2 * y]

    found = audited(case(lambda: Stateful(moves).eval()), backend(unmoved))
    assert (found.outcome, found.reason) == (outcome, reason)


def test_a_net_whose_copies_share_its_weights_stays_as_it_is() -> None:
    class Shared(Product):
        def __deepcopy__(self, memo: object) -> "Shared":
            other = Shared().eval()
            other.linear = self.linear
            return other

    uses = [("magic", magic())]
    net, twin = Shared().eval(), Shared().eval()
    twin.load_state_dict(net.state_dict())
    assert list(wrongs(net, net, twin, uses)) == []
    assert twin.linear.weight.dtype is torch.float32


CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "_parameters of linear": lambda net: net.linear.weight.data.add_(1),
    "training of linear": lambda net: net.linear.train(),
    "attributes of linear": lambda net: setattr(net.linear, "mine", 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_net_is_found(name: str) -> None:
    nets = []

    def make() -> nn.Module:
        nets.append(Product().eval())
        return nets[-1]

    found = audited(case(make), backend(does=lambda: CHANGES[name](nets[0])))
    assert (found.outcome, found.reason) == ("changed", name)
    assert not found.is_right


def test_what_a_case_names_is_compared_too() -> None:
    builds: list[int] = []
    own = backend(does=lambda: builds.append(1))
    found = audited(case(state=lambda _: len(builds)), own)
    assert (found.outcome, found.reason) == ("changed", "the state that the case names")


def test_a_changed_net_is_compared_with_a_changed_twin() -> None:
    def change(net: Product) -> None:
        net.linear.weight.data.mul_(2)

    def stale(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [y / 2 for y in right(call, tensors)]

    assert audited(case(change=change), backend(right)).outcome == "served"
    assert audited(case(change=change), backend(stale)).outcome == "wrong"


def test_an_error_that_is_no_sentence_is_a_crash() -> None:
    missing: Any = {"own": None}
    found = audit_case(case(), "own", QUICK, missing)
    assert found.outcome == "crashed" and found.reason.startswith("KeyError: ")


def test_a_backend_that_cannot_run_the_net_is_refused() -> None:
    def build(*_: object) -> Any:
        raise ZeroDivisionError("no such op")

    found = audited(case(), Backend("builds nothing", build, build))
    assert (found.outcome, found.is_right) == ("refused", True)
    assert found.reason == "own: own: ZeroDivisionError: no such op"


def test_an_unknown_backend_is_an_error_of_the_caller() -> None:
    with pytest.raises(InputError, match="no backend 'grph'; there are default, eager"):
        audit_case(case(), "grph", QUICK)
    with pytest.raises(InputError, match="no backend 'grph'; there are default, each, eager"):
        choices(["graph", "grph"])
    assert {"default", "graph", "script_frozen"} <= set(choices(["each"]))
    assert "eager" not in choices(["each"]) and choices(["aot", "aot"]) == ("aot",)


FILE = """
import os
import time

import torch

KIND = {kind!r}
NEEDS = {needs!r}


class Net(torch.nn.Module):
    def __deepcopy__(self, memo):
        {copies}

    def forward(self, x):
        return 2 * x


def make():
    return Net().eval()


def example():
    return (torch.ones(2),)


def calls():
    yield "two", (torch.full((2,), 2.0),)
"""


def write(folder: Path, name: str, copies: str = "return Net().eval()", **parts: object) -> None:
    text = FILE.format(copies=copies, kind=parts.get("kind", "form"), needs=parts.get("needs", ()))
    (folder / f"{name}.py").write_text(text)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "nets"
    folder.mkdir()
    write(folder, "dies", "os.abort()")
    write(folder, "hangs", "time.sleep(60)")
    write(folder, "raises", "raise SystemExit(7)")
    write(folder, "lacks", needs=("no_such_package",))
    write(folder, "fits", kind="harmless")
    (folder / "_parts.py").write_text("raise ValueError('no case')")
    return folder


def test_a_crash_and_a_hang_end_their_own_case_alone(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cases = find_cases([corpus])
    limits = JobLimits(8.0)
    outcomes = run_audit(cases, ("graph",), QUICK, limits, out)
    found = {Path(each.case).stem: each for each in outcomes}
    assert {name: each.outcome for name, each in found.items()} == {
        "dies": "crashed", "hangs": "crashed", "raises": "crashed", "fits": "served"
    }  # fmt: skip
    assert found["dies"].reason.startswith("its process ended with SIGABRT")
    assert found["hangs"].reason == "not done in 8 s"
    assert "SystemExit: 7" in found["raises"].reason
    assert list(complaints(outcomes)) == ["graph: 3 crashed"]
    lines = (out / "outcomes.jsonl").read_bytes()
    assert run_audit(cases, ("graph",), QUICK, limits, out, RunPlan(resume=True)) == outcomes
    assert (out / "outcomes.jsonl").read_bytes() == lines, "nothing was audited again"
    write(corpus, "raises", "raise SystemExit(8)")
    again = run_audit(cases, ("graph",), QUICK, limits, out, RunPlan(resume=True))
    reasons = {Path(each.case).stem: each.reason for each in again}
    assert "SystemExit: 8" in reasons["raises"], "a changed file is audited again"
    added = (out / "outcomes.jsonl").read_bytes().removeprefix(lines)
    assert added.count(b"\n") == 1
    with pytest.raises(InputError, match="was audited with other settings"):
        run_audit(cases, ("graph",), OptimizeSettings(), limits, out, RunPlan(resume=True))


def test_the_command_prints_counts_and_then_the_cases_that_are_not_right(
    corpus: Path, tmp_path: Path
) -> None:
    for name in ("hangs", "raises"):
        (corpus / f"{name}.py").unlink()
    words = ["optimize", "audit", str(corpus), "--seconds", "0.02", "--backend", "script_frozen"]
    result = CliRunner().invoke(main, [*words, "--backend", "graph"])
    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    assert [line.split("│")[1].strip() for line in lines if "│" in line] == [
        "script_frozen",
        "graph",
    ]
    assert "graph: crashed: nets/dies.py: its process ended with SIGABRT" in result.stdout
    assert max(map(len, lines)) <= 100
    assert (
        f"note: left out, as no_such_package is not installed: {corpus}/lacks.py" in result.stderr
    )
    assert "passnet: script_frozen: 1 crashed; graph: 1 crashed" in result.stderr


def test_the_command_asks_for_files() -> None:
    result = CliRunner().invoke(main, ["optimize", "audit"])
    assert result.exit_code == 2 and "give files of nets, or folders of them" in result.stderr
    result = CliRunner().invoke(main, ["optimize", "audit", "no/such/folder"])
    assert result.exit_code == 2 and "no/such/folder: no Python file of a net" in result.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("KIND = 1 +", "SyntaxError"),
        ("make = None", "defines no KIND"),
        ("KIND = str(1)", "malformed node"),
    ],
)
def test_a_file_that_is_no_case_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(text)
    with pytest.raises(InputError, match=sentence):
        find_cases([tmp_path])


def test_a_file_that_lacks_a_part_is_refused(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text("KIND = 'form'\nmake = example = None")
    with pytest.raises(InputError, match=r"case.py: defines no calls; a case has KIND, make"):
        read_case(tmp_path / "case.py")


def outcome(kind: str, outcome: Outcome, **facts: Any) -> CaseOutcome:
    return CaseOutcome("nets/a.py", kind, facts.pop("asked", "default"), outcome, **facts)


def test_the_default_choice_must_make_most_harmless_nets_faster() -> None:
    fast, slow = (outcome("harmless", "served", is_faster=each) for each in (True, False))
    assert list(complaints([fast] * 9 + [slow])) == []
    [complaint] = complaints([fast] * 8 + [slow, outcome("harmless", "refused")])
    assert complaint == (
        "default: 8 of 10 harmless nets get a backend faster than eager PyTorch, fewer than 90%"
    )
    alone = [outcome("harmless", "refused", asked="aot"), outcome("form", "refused", asked="aot")]
    assert list(complaints(alone)) == [] and all(each.is_right for each in alone)
    found = [outcome("form", name) for name in ("wrong", "changed", "crashed", "refused", "served")]
    assert list(complaints(found)) == ["default: 1 wrong, 1 changed, 1 crashed"]
    assert [each.is_right for each in found] == [False, False, False, True, True]


def test_the_table_counts_by_backend() -> None:
    outcomes = [
        outcome("harmless", "served", is_faster=True),
        outcome("harmless", "served", speedup=0.5, backend="aot"),
        outcome("form", "wrong", asked="aot", reason="x" * 200),
    ]
    assert audit_table(outcomes).rows == [
        ("default", "0", "0", "0", "0", "2", "1 of 2"),
        ("aot", "1", "0", "0", "0", "0", "0 of 0"),
    ]
    slow, wrong = audit_lines(outcomes, 100)
    assert slow == "default: served: nets/a.py: no faster by aot, 0.50 times as fast as eager"
    assert wrong.startswith("aot: wrong: nets/a.py: xxx") and len(wrong) == 100


FILES = find_cases([NETS / "hazards", NETS / "harmless"])


def test_nets_of_the_corpus_are_right_by_a_backend_alone() -> None:
    sample = FILES[:: len(FILES) // 8]
    assert wrong_of(run_audit(sample, ("graph",), QUICK, LIMITS)) == []


PARTS = 12
WHOLE = OptimizeSettings(threads=1, seconds=0.1, budget_s=30.0)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_hazards_are_right_by_the_default_choice(part: int) -> None:
    hazards = [file for file in FILES if file.kind != HARMLESS]
    assert wrong_of(run_audit(hazards[part::PARTS], (DEFAULT,), WHOLE, JobLimits(600.0))) == []


@pytest.mark.slow
def test_harmless_nets_get_a_faster_backend_by_the_default_choice() -> None:
    harmless = [file for file in FILES if file.kind == HARMLESS]
    outcomes = run_audit(harmless, (DEFAULT,), WHOLE, JobLimits(600.0))
    assert list(complaints(outcomes)) == [], wrong_of(outcomes)


def wrong_of(outcomes: list[CaseOutcome]) -> list[str]:
    return audit_lines(outcomes, 400)
