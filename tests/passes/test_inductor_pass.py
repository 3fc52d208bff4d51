"""Pass folders as a pass of Inductor: graphs, caches, other people's passes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor import config

from passnet.errors import InputError
from passnet.inductor.graph_pass import SETTING, passes_that_are_set
from passnet.passes.inductor_pass import InductorPass, passes_in_inductor
from tests.passes.graphs import CLAMP_ALONE, graph_of, write_folder

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it

KERNEL = """
import torch
from passnet.passes import cpp

SOURCE = '''
#include <cstdint>
extern "C" void relu_of_sum(const float* x, const float* y, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) out[i] = x[i] + y[i] > 0 ? x[i] + y[i] : 0;
}
'''
KERNEL = cpp.kernel(SOURCE, "relu_of_sum")

guards = ("x, y: float32, shape (m, n), contiguous, cpu",)


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def fused(x, y):
    out = torch.empty_like(x)
    KERNEL(x, y, out, x.numel())
    return out


def replacement_func():
    return fused
"""

OPAQUE = KERNEL.replace("KERNEL(x, y", "x.data_ptr()\n    KERNEL(x, y")
"""A replacement that asks where a tensor lies."""


def net(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x + y) * 2


def called(module: torch.fx.GraphModule) -> list[str]:
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def rewritten(own: InductorPass, *values: Any) -> torch.fx.GraphModule:
    module = graph_of(net)
    params = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, value in zip(params, values, strict=True):
        node.meta["example_value"] = value
    own(module.graph)
    module.recompile()
    return module


def test_a_kernel_by_address_becomes_an_op_that_is_named_by_content(tmp_path: Path) -> None:
    own = InductorPass(write_folder(tmp_path, Fuse=OPAQUE))
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    module = rewritten(own, x, y)
    [name, _] = called(module)
    digest = own.passes[0].digest  # type: ignore[union-attr]
    assert name == f"passnet.Fuse_{digest}.default" and digest
    torch.testing.assert_close(module(x, y), net(x, y))
    assert own.num_matches == 1
    other = InductorPass(tmp_path)
    assert called(rewritten(other, x, y)) == called(module), "the same in each process"


def test_a_replacement_of_kernels_stays_a_call_that_inductor_sees_through(tmp_path: Path) -> None:
    own = InductorPass(write_folder(tmp_path, Fuse=KERNEL))
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    module = rewritten(own, x, y)
    assert own.num_matches == 1 and "passnet." not in called(module)[0]
    torch.testing.assert_close(module(x, y), net(x, y))


INTO_ARGUMENT = KERNEL.replace("KERNEL(x, y, out", "KERNEL(x, y, x").replace(
    "return out", "return x"
)


WRITES_NOTHING = KERNEL.replace("float* out", "const float* out").replace("out[i] =", "n +=")
WRITES_NOTHING = WRITES_NOTHING.replace("  for (", "  volatile float n = 0;\n  for (")
WRITES_NOTHING = WRITES_NOTHING.replace("return out", "return out.zero_()")
OF_TWO_NAMES = KERNEL.replace("KERNEL(x, y, out", "KERNEL(x, out, out")


@pytest.mark.parametrize("text", [OPAQUE, INTO_ARGUMENT, WRITES_NOTHING, OF_TWO_NAMES])
def test_a_kernel_that_inductor_cannot_follow_is_an_op(tmp_path: Path, text: str) -> None:
    own = InductorPass(write_folder(tmp_path, Fuse=text))
    module = rewritten(own, torch.randn(3, 4), torch.randn(3, 4))
    assert called(module)[0].startswith("passnet.Fuse_")


def test_a_replacement_of_torch_ops_stays_a_call_that_inductor_sees_through(tmp_path: Path) -> None:
    own = InductorPass(write_folder(tmp_path, Fuse=CLAMP_ALONE))
    module = rewritten(own, torch.randn(3, 4), torch.randn(3, 4))
    assert own.num_matches == 1 and "passnet." not in called(module)[0]


def test_kernels_of_one_name_and_type_do_not_mix(tmp_path: Path) -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    product = KERNEL.replace("x[i] + y[i] > 0 ? x[i] + y[i] : 0", "x[i] * y[i]")
    ops = []
    for number, text in enumerate((KERNEL, product)):
        own = InductorPass(write_folder(tmp_path / str(number), Fuse=text))
        ops.append(own.passes[0].kernel_ops[0]())  # type: ignore[union-attr]
    results = [torch.empty(3, 4), torch.empty(3, 4)]
    for op, result in zip(ops, results, strict=True):
        op(x, y, result, 12)
    assert torch.equal(results[0], torch.relu(x + y)) and torch.equal(results[1], x * y)


COUNTED = KERNEL.replace("return x, y", "return x, y, x.numel()")
COUNTED = COUNTED.replace("fused(x, y)", "fused(x, y, size)").replace(
    "x.numel())\n    ", "size)\n    "
)


def test_replacement_args_may_compute_numbers(tmp_path: Path) -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    for number, text in enumerate(
        (COUNTED, COUNTED.replace("KERNEL(x,", "x.data_ptr(); KERNEL(x,"))
    ):
        own = InductorPass(write_folder(tmp_path / str(number), Fuse=text))
        module = rewritten(own, x, y)
        assert own.num_matches == 1
        torch.testing.assert_close(module(x, y), net(x, y))


def test_autocast_and_gradients_within_leave_the_graph_alone(tmp_path: Path) -> None:
    own = InductorPass(write_folder(tmp_path, Fuse=KERNEL))
    x, weight = torch.randn(3, 4), torch.randn(3, 4, requires_grad=True)

    def graph_with(enter: Any, *args: Any) -> torch.fx.Graph:
        module = graph_of(net)
        first = next(iter(module.graph.nodes))
        with module.graph.inserting_before(first):
            module.graph.call_function(enter, args)
        params = [node for node in module.graph.nodes if node.op == "placeholder"]
        for node, value in zip(params, (x, weight), strict=True):
            node.meta["example_value"] = value
        return module.graph

    enter = torch.amp.autocast_mode._enter_autocast
    switch = torch._C._set_grad_enabled
    with torch.no_grad():
        for expected, target, *args in (
            (1, enter, "cpu", None, False, None), (0, enter, "cpu", torch.bfloat16, True, None),
            (1, switch, False), (0, switch, True),
        ):  # fmt: skip
            own.reports.clear()
            own(graph_with(target, *args))
            assert own.num_matches == expected, (target, args)
        own.reports.clear()
        with torch.autocast("cpu", torch.bfloat16):
            rewritten(own, x, x)
        assert own.num_matches == 0


def test_a_guard_leaves_the_graph_alone(tmp_path: Path) -> None:
    own = InductorPass(write_folder(tmp_path, Fuse=KERNEL))
    before = graph_of(net).code
    assert rewritten(own, torch.randn(4, 3).T, torch.randn(4, 3).T).code == before
    assert own.num_matches == 0


def test_gradients_leave_the_graph_alone(tmp_path: Path) -> None:
    own = InductorPass(write_folder(tmp_path, Fuse=KERNEL))
    x = torch.randn(3, 4, requires_grad=True)
    assert rewritten(own, x, x).code == graph_of(net).code


def test_the_uuid_is_of_the_content(tmp_path: Path) -> None:
    first = InductorPass(write_folder(tmp_path / "a", Fuse=KERNEL)).uuid()
    assert first == InductorPass(write_folder(tmp_path / "b", Fuse=KERNEL)).uuid()
    assert first != InductorPass(write_folder(tmp_path / "c", Fuse=KERNEL + "\n")).uuid()


def test_passes_of_others_stay(tmp_path: Path) -> None:
    def theirs(graph: torch.fx.Graph) -> None:
        """Do nothing."""

    folder = write_folder(tmp_path, Fuse=KERNEL)
    for former, expected in ((None, []), (theirs, [theirs]), ([theirs], [theirs])):
        with config.patch({SETTING: former}):
            with passes_in_inductor(folder) as own:
                assert passes_that_are_set() == [*expected, own]
            assert getattr(config, SETTING) == former


def test_nothing_to_apply_is_an_error() -> None:
    with pytest.raises(InputError, match="give passes"):
        InductorPass()


@pytest.fixture
def fresh_cache(tmp_path: Path) -> Iterator[dict[str, str]]:
    yield {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}


COMPILED = """
import sys, torch
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code
from passnet.passes.inductor_pass import passes_in_inductor

def net(x, y):
    return torch.relu(x + y) * 2

dynamic = True if sys.argv[2:] else None
with torch.no_grad(), passes_in_inductor(sys.argv[1]) as own:
    compiled = torch.compile(net, dynamic=dynamic)
    for rows in (3, 5, 8) if dynamic else (3,):
        x, y = torch.randn(rows, 4), torch.randn(rows, 4)
        found, texts = run_and_get_code(compiled, x, y)
        torch.testing.assert_close(found, net(x, y))
        is_op = any("ops.passnet." in text for text in texts)
        assert not (dynamic and is_op), "inlined"
hits = counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"]
print(own.num_matches, hits > 0)
"""


def compiled(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "-c", COMPILED, *words]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("text", [KERNEL, OPAQUE], ids=["kernel", "replacement"])
def test_a_warm_cache_runs_the_op_in_another_process_and_forgets_what_changed(
    tmp_path: Path, fresh_cache: dict[str, str], text: str
) -> None:
    folder = write_folder(tmp_path / "passes", Fuse=text)
    assert compiled(fresh_cache, str(folder)) == "1 False"
    assert compiled(fresh_cache, str(folder)) == "0 True", "the cached graph calls the op"
    write_folder(tmp_path / "passes", Fuse=text + "\n")
    assert compiled(fresh_cache, str(folder)) == "1 False", "another pass, another graph"


@pytest.mark.slow
@pytest.mark.parametrize("text", [KERNEL, CLAMP_ALONE], ids=["kernel", "torch ops"])
def test_sizes_may_vary(tmp_path: Path, fresh_cache: dict[str, str], text: str) -> None:
    folder = write_folder(tmp_path / "passes", Fuse=text)
    done = compiled(fresh_cache, str(folder), "dynamic")
    assert done.startswith("1 "), "one graph for all sizes"


STANDALONE = """
import sys, torch
from torch._inductor import CompiledArtifact, standalone_compile
from passnet.passes.inductor_pass import InductorPass

def net(x, y):
    return torch.relu(x + y) * 2

own, path = InductorPass(sys.argv[1]), sys.argv[2]

def keep(graph, inputs):
    settings = {"config_patches": {"pre_grad_custom_pass": own}}
    standalone_compile(graph, inputs, options=settings).save(path=path, format="binary")
    return graph.forward

x, y = torch.randn(3, 4), torch.randn(3, 4)
with torch.no_grad():
    if sys.argv[3:]:
        torch.compile(net, backend=keep, dynamic=False)(x, y)
    [found] = CompiledArtifact.load(path=path, format="binary")(x, y)
torch.testing.assert_close(found, net(x, y))
print(own.num_matches, end="")
"""


@pytest.mark.slow
def test_an_artifact_of_the_standalone_compiler_is_loaded_elsewhere(
    tmp_path: Path, fresh_cache: dict[str, str]
) -> None:
    folder, artifact = write_folder(tmp_path / "passes", Fuse=KERNEL), tmp_path / "artifact"
    for words, expected in ((["make"], "1"), ([], "0")):
        command = [sys.executable, "-c", STANDALONE, str(folder), str(artifact), *words]
        done = subprocess.run(
            command, env=fresh_cache, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.splitlines()[-1] == expected


@pytest.mark.parametrize("is_apart", [True, False])
def test_inputs_of_one_memory_leave_a_graph_that_writes_alone(
    tmp_path: Path, is_apart: bool
) -> None:
    def written(x: torch.Tensor, v: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        total = v + y
        x.add_(1)
        return torch.relu(total)

    folder = write_folder(tmp_path, Fuse=KERNEL)
    x, y = torch.arange(4.0).reshape(2, 2), torch.zeros(2, 2)
    v = x.clone() if is_apart else x[:]
    torch._dynamo.reset()
    uncached = config.patch(force_disable_caches=True)
    with uncached, passes_in_inductor(folder) as passes, torch.no_grad():
        assert torch.compile(written)(x, v, y).tolist() == [[0, 1], [2, 3]]
    assert passes.num_matches == is_apart
