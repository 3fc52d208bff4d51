"""torch.compile with the passnet backend: real nets, options, gradients, Inductor's residual."""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.errors import InputError, PassError, PassFolderError
from passnet.passes import backend
from passnet.passes.apply.rewrite import PassReport
from passnet.passes.backend import compile_graph
from tests.passes.graphs import graph_of, pass_of, write_folder

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it

EXAMPLES = Path(__file__).parents[2] / "examples" / "passes"
SCALED_RELU = """
import torch

CALLS = []

def pattern(x, k):
    return torch.relu(x) * k

def replacement_args(x, k):
    return x, k

def fused(x, k):
    CALLS.append(type(k))
    return torch.clamp(x, min=0) * k

def replacement_func():
    return fused
"""


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one pass, for relu(x) * k."""
    return write_folder(tmp_path / "passes", Fuse=SCALED_RELU)


def net(x: torch.Tensor, k: Any) -> torch.Tensor:
    return (torch.relu(x) * k).sin() + 1


def compiled(function: Callable[..., Any], **options: Any) -> tuple[Any, list[list[PassReport]]]:
    """A compiled function, and the list that the reports of its graphs go to."""
    reports: list[list[PassReport]] = []
    options = {"report": reports.append, **options}
    return torch.compile(function, backend="passnet", options=options), reports


def matches(reports: list[list[PassReport]]) -> list[dict[str, int]]:
    return [{report.name: report.num_matches for report in graph} for graph in reports]


@pytest.fixture(scope="module")
def llama() -> torch.nn.Module:
    """A Llama of two small layers with random weights."""
    transformers = pytest.importorskip("transformers", reason="needs pip install passnet[models]")
    with contextlib.suppress(ImportError):  # transformers imports torchvision where there is one
        import_torchvision()
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, vocab_size=64, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.LlamaModel(config).eval()


def run_llama(net: Any) -> torch.Tensor:
    return net(torch.arange(8)[None], use_cache=False).last_hidden_state


@torch.no_grad()
def test_a_real_net_under_several_folders_gives_the_values_of_eager(llama: Any) -> None:
    folders = [EXAMPLES / name for name in ("residual_rms_norm", "rms_norm", "rotary_embedding")]
    optimised, reports = compiled(llama, passes=[str(folder) for folder in folders])
    torch.testing.assert_close(run_llama(optimised), run_llama(llama), rtol=1e-5, atol=1e-5)
    assert matches(reports) == [{"FuseAddRmsNorm": 4, "FuseRmsNorm": 1, "FuseRotary": 2}]


@torch.no_grad()
def test_the_order_of_the_folders_is_that_of_the_passes(llama: Any) -> None:
    folders = [EXAMPLES / name for name in ("rms_norm", "residual_rms_norm")]
    optimised, reports = compiled(llama, passes=folders)
    run_llama(optimised)
    assert matches(reports) == [{"FuseRmsNorm": 5, "FuseAddRmsNorm": 0}]
    assert reports[0][1].miss is not None


@torch.no_grad()
def test_without_passes_nothing_changes(llama: Any) -> None:
    optimised, reports = compiled(llama)
    assert torch.equal(run_llama(optimised), run_llama(llama))
    assert reports == [[]]


def test_with_gradients_on_nothing_is_rewritten_and_the_log_says_so(
    llama: Any, caplog: pytest.LogCaptureFixture
) -> None:
    optimised, reports = compiled(llama, passes=EXAMPLES / "rms_norm")
    backend._warn_once.cache_clear()  # another test may have been warned
    with caplog.at_level(logging.WARNING, "passnet"):
        out = run_llama(optimised)
    assert reports == [[]]
    assert [record.levelname for record in caplog.records if record.name == "passnet"] == [
        "WARNING"
    ]
    assert "nothing is rewritten" in caplog.text and "torch.no_grad()" in caplog.text
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in llama.layers.parameters())
    llama.zero_grad()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_an_input_that_needs_gradients_is_rewritten_where_none_are_recorded(
    folder: Path, mode: Callable[[], Any]
) -> None:
    optimised, reports = compiled(net, passes=folder)
    x = torch.randn(2, 3, requires_grad=True)
    with mode():
        torch.testing.assert_close(optimised(x, x), net(x, x))
    assert matches(reports) == [{"Fuse": 1}]


def test_gradients_on_without_an_input_that_needs_one_is_rewritten(folder: Path) -> None:
    optimised, reports = compiled(net, passes=folder)
    optimised(torch.randn(2), torch.randn(2))
    assert matches(reports) == [{"Fuse": 1}]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"nonsense": 1},
        InputError,
        "no option 'nonsense'; there are passes, library, residual, report",
    ),
    ({"residual": "jit"}, InputError, "residual is 'jit'; choose eager, inductor or inlined"),
    ({"passes": "nowhere"}, PassFolderError, "nowhere: no such folder"),
    ({"passes": ["nowhere"]}, PassFolderError, "nowhere: no such folder"),
]


@pytest.mark.parametrize(("options", "error", "words"), WRONG)
def test_a_wrong_option_gives_one_clear_error(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=words) as error_info:
        torch.compile(net, backend="passnet", options=options)(torch.ones(2), torch.ones(2))
    assert type(error_info.value.inner_exception) is error


def test_a_mode_is_refused() -> None:
    optimised = torch.compile(net, backend="passnet", mode="max-autotune")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="has no mode 'max-autotune'"):
        optimised(torch.ones(2), torch.ones(2))


def test_each_graph_of_a_net_with_a_graph_break_is_reported(folder: Path) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x) * x
        torch._dynamo.graph_break()
        return x - 1

    optimised, reports = compiled(broken, passes=folder)
    x = torch.randn(3)
    assert torch.equal(optimised(x), broken(x))
    assert matches(reports) == [{"Fuse": 1}, {"Fuse": 0}]


@pytest.mark.parametrize("residual", ["eager", "inductor"])
@torch.no_grad()
def test_the_replacement_is_called_with_tensors_and_with_integers_of_any_value(
    folder: Path, residual: str
) -> None:
    optimised = torch.compile(
        net, backend="passnet", dynamic=True, options={"passes": folder, "residual": residual}
    )
    for k in (3, 4, torch.full((2,), 0.5)):
        x = torch.randn(k if isinstance(k, int) else 2, 2)
        torch.testing.assert_close(optimised(x, k), net(x, k))
    assert [int, int, torch.Tensor] == sys.modules["pass_dir.Fuse"].CALLS


@torch.no_grad()
def test_inductor_compiles_around_several_outputs_and_two_passes(tmp_path: Path) -> None:
    pair = """
import torch
def pattern(x, n: int):
    a = torch.exp(x)
    return a, a.sum(n)
def replacement_args(x, n):
    return n, x
CALLS = []
def both(n, x):
    CALLS.append(n)
    return torch.exp(x), torch.exp(x).sum(n)
def replacement_func():
    return both
"""
    folder = write_folder(tmp_path, ["Pair", "Fuse"], Pair=pair, Fuse=SCALED_RELU)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = torch.exp(x)
        b = a.sum((1,))
        return a * 2, torch.relu(b) * b, torch.relu(a) * x

    x = torch.randn(3, 3)
    optimised, reports = compiled(function, passes=folder, residual="inductor")
    for actual, expected in zip(optimised(x), function(x), strict=True):
        torch.testing.assert_close(actual, expected)
    assert matches(reports) == [{"Pair": 1, "Fuse": 2}]
    assert sys.modules["pass_dir.Pair"].CALLS == [1]
    assert len(sys.modules["pass_dir.Fuse"].CALLS) == 2


@torch.no_grad()
def test_inductor_refuses_a_pattern_that_returns_a_view_of_its_argument() -> None:
    def transposed(x):
        return (x.transpose(0, 1),)

    module = graph_of(lambda x: (x.transpose(0, 1),))
    passes = [pass_of(transposed, lambda x: x.transpose(0, 1).clone(), name="Turn")]
    words = "Turn: the pattern returns a view of its argument, .* use the eager residual"
    with pytest.raises(Exception, match=words) as error_info:
        compile_graph(module, [torch.ones(2, 3)], passes, "inductor")
    assert isinstance(error_info.value, PassError) or "PassError" in str(error_info.value)


@pytest.mark.slow
@torch.no_grad()
def test_the_residual_of_a_graph_that_matched_nothing_still_runs(folder: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1

    for residual in ("eager", "inductor"):
        optimised, reports = compiled(function, passes=folder, residual=residual)
        x = torch.randn(4)
        torch.testing.assert_close(optimised(x), function(x))
        assert matches(reports) == [{"Fuse": 0}]
        torch._dynamo.reset()


@pytest.mark.slow
@torch.no_grad()
def test_the_rotary_example_keeps_the_strides_that_inductor_counts_on(llama: Any) -> None:
    folders = [EXAMPLES / "rotary_embedding", EXAMPLES / "rms_norm"]
    optimised, reports = compiled(llama, passes=folders, residual="inductor")
    torch.testing.assert_close(run_llama(optimised), run_llama(llama), rtol=1e-4, atol=1e-5)
    assert matches(reports)[0]["FuseRotary"] == 2


@pytest.mark.parametrize("residual", ["eager", "inductor", "inlined"])
@pytest.mark.parametrize("starts_apart", [True, False])
def test_inputs_of_one_memory_are_read_before_they_are_written(
    folder: Path, residual: str, starts_apart: bool
) -> None:
    def written(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        positive = torch.relu(v)
        x.add_(1)
        return positive * 3

    fast, reports = compiled(written, passes=str(folder), residual=residual)
    for is_apart in (starts_apart, not starts_apart):
        x = torch.arange(-2.0, 2)
        v = x.clone() if is_apart else x[:]
        with torch.no_grad():
            assert fast(x, v).tolist() == [0, 0, 0, 3]
        assert x.tolist() == [-1, 0, 1, 2]
    assert matches(reports) == [{"Fuse": 1}] * starts_apart
