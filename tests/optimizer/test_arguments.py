"""Arguments and settings of `optimize`: what is taken for what, and sentences about the rest."""

from pathlib import Path
from typing import Any

import pytest
import torch

import passnet
from passnet.api import optimize_calls
from passnet.errors import InputError
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.nets import block

X = torch.randn(2, 8)
QUICK: dict[str, Any] = {"backends": "graph", "seconds": 0.02}

ODD_SETTINGS: dict[str, dict[str, Any]] = {
    "freeze is 1": {"freeze": 1},
    "budget_s is 0; give seconds above 0": {"budget_s": 0},
    "'10 days' is no duration": {"budget_s": "10 days"},
    "budget_s is nan": {"budget_s": float("nan")},
    "threads is 0": {"threads": 0},
    "seconds is -1": {"seconds": -1},
    r"dynamic is \['batch'\]; give a dict": {"dynamic": ["batch"]},
    "no precision 'int3'; there are int8": {"precision": ("int3",)},
    "tolerance is -1.0; give a relative error": {"tolerance": -1.0},
    "evaluate is 3; give a function": {"evaluate": 3},
    "may_lose is 'x'": {"may_lose": "x"},
    r"backends is \(1,\); give names": {"backends": (1,)},
    "no backend 'grap'; .* did you mean graph": {"backends": "grap"},
    "authors is 3": {"authors": 3},
    "llm is 3": {"llm": 3},
    "no setting 'budget'": {"budget": 3},
    "no setting 'x'.*by name as inputs": {"x": X},
    "progress is 3; give a function": {"progress": 3},
    "out is 3; give the path of a folder": {"out": 3},
    "test_arguments.py: is a file; give a folder": {"out": __file__},
}


@pytest.mark.parametrize("says", ODD_SETTINGS)
def test_a_setting_of_another_kind_is_refused_in_one_sentence(says: str) -> None:
    with pytest.raises(InputError, match=says):
        passnet.optimize(block(), X, **QUICK | ODD_SETTINGS[says])


@pytest.mark.parametrize("odd", [3, "words", X[0, 0].item])
def test_inputs_are_a_list_of_examples(odd: Any) -> None:
    with pytest.raises(InputError, match="give a list of examples"):
        passnet.optimize(block(), inputs=odd)


def test_a_net_can_be_called() -> None:
    with pytest.raises(InputError, match="the net is int; give a module"):
        passnet.optimize(3, X)  # pyrefly: ignore


def test_a_name_stands_for_a_tuple_and_a_text_for_a_time() -> None:
    settings = OptimizeSettings(
        backends="graph", precision="int8", authors=["library"], budget_s="10m", library=Path("a")
    )  # pyrefly: ignore
    assert settings.backends == ("graph",) and settings.precision == ("int8",)
    assert settings.authors == ("library",) and settings.budget_s == 600 and settings.library == "a"


@pytest.mark.parametrize("inputs", [X, {"x": X}])
def test_a_tensor_or_a_dict_alone_is_one_example(inputs: Any) -> None:
    fast = passnet.optimize(block(), inputs=inputs, **QUICK)
    assert torch.equal(fast(X)["first"], block()(X)["first"])


def test_a_net_is_optimised_and_loaded_within_inference_mode(tmp_path: Path) -> None:
    net, settings = block(), OptimizeSettings(backends=("graph",), seconds=0.02)
    with torch.inference_mode():
        done = optimize_calls(net, [((torch.randn(2, 8),), {})], settings, tmp_path / "out")
        assert done.record.forms[0].engines[1].status == "ok"
        assert torch.equal(passnet.load(tmp_path / "out", net)(X)["first"], net(X)["first"])
        assert torch.is_inference_mode_enabled()


def test_an_exported_program_is_taken_in_any_mode(tmp_path: Path) -> None:
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout()).eval()
    net = torch.export.export(inner, (X,)).module()
    assert net.training  # and `net.eval()` raises
    settings = OptimizeSettings(backends=("graph",), seconds=0.02)
    done = optimize_calls(net, [((X,), {})], settings, tmp_path / "out")
    assert done.record.forms[0].engines[1].status == "ok"
    torch.testing.assert_close(done.net(X), inner(X))
    torch.testing.assert_close(passnet.load(tmp_path / "out", net)(X), inner(X))
