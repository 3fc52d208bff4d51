"""Kernels that the compiler generates compute what eager torch does, in every dtype and width."""

import numpy as np
import pytest
import torch
from torch.torch_version import TorchVersion

from passnet.errors import AuthorError
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph
from passnet.inductor.generated_code import generate
from passnet.passes import cpp
from passnet.passes.codegen.cpp_source import ENTRY, cpp_source, fails_in_threads
from passnet.passes.codegen.lowered_ranges import GraphLowering
from tests.agent.generated import NORM, SILU, run, specs
from tests.graph.programs import graph_of, program_of

pytestmark = pytest.mark.xdist_group("agent")


def test_generated_code_is_data_about_kernels_and_memory() -> None:
    graph = Graph(NORM, specs(a=((5, 40), "float32"), b=((5, 40), "float32"),
                              c=((40,), "float32"), d=((40,), "float32")))  # fmt: skip
    code = generate(graph)
    assert list(code.inputs) == ["a", "b", "c", "d"] and len(code.outputs) == 2
    assert all(form.shape == (5, 40) for _, form in code.outputs)
    held = {name for name, _ in code.outputs}
    assert held < set(code.buffers), "the mean of a row is in a buffer that nobody sees"
    used = {slot.memory for call in code.calls for slot in call.arguments}
    assert used <= {*code.inputs, *code.buffers}
    assert "torch/" not in cpp_source(code)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (program_of("y = torch.matmul(a, b)", returns="(y,)"), "calls a library"),
        (program_of("y = a.view(-1)", params="a", returns="(y,)"), "view of an argument"),
        (
            program_of("x = a * 2.0", "y = x.view(-1)", params="a", returns="(x, y)"),
            "two of one value",
        ),
    ],
)
def test_what_is_no_kernel_of_its_own_is_refused(program, why: str) -> None:
    with pytest.raises(AuthorError, match=why):
        generate(graph_of(program, (8, 8)))


@pytest.mark.parametrize("options", [{}, {"cpp.simdlen": 1}])
@pytest.mark.parametrize("size", [7, 64, 77])
def test_kernels_compute_what_eager_torch_does_at_every_width(size: int, options: dict) -> None:
    graph = graph_of(SILU, (3, size))
    inputs = [torch.randn(3, size) * 4 for _ in range(2)]
    (result,) = run(graph, inputs, **options)
    torch.testing.assert_close(result, build(SILU)(*inputs)[0])


FUNCTIONS = """\
#define PASSNET_VECTOR_BYTES %d
#include "inductor_vector.h"
using V = at::vec::Vectorized<float>;
#define FUNCTION(NAME)                                              \\
  extern "C" void call_##NAME(const float* x, float* y, int64_t n) { \\
    for (int64_t i = 0; i < n; i += V::size()) V::loadu(x + i).NAME().store(y + i); \\
  }
FUNCTION(exp) FUNCTION(tanh) FUNCTION(erf) FUNCTION(sin) FUNCTION(cos)
extern "C" void call_pow(const float* x, const float* y, float* z, int64_t n) {
  for (int64_t i = 0; i < n; i += V::size())
    V::loadu(x + i).pow(V::loadu(y + i)).store(z + i);
}
"""


@pytest.mark.parametrize("num_bytes", [64, 32])
def test_functions_in_registers_are_right_for_every_kind_of_float(num_bytes: int) -> None:
    bits = np.arange(0, 2**32, 4096, dtype=np.uint32) + np.uint32(1234)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 88.7, 88.8, -87.4, -103.9, 3.93, 8191.9]
    x = torch.from_numpy(np.concatenate([bits.view(np.float32), np.float32(special * 4)]))
    for name in ("exp", "tanh", "erf", "sin", "cos"):
        actual = torch.empty_like(x)
        kernel = cpp.kernel(FUNCTIONS % num_bytes, f"call_{name}", "ppn")
        kernel(x.data_ptr(), actual.data_ptr(), x.numel())
        exact = getattr(torch, name)(x.double())
        expected = exact.float()
        assert torch.equal(actual.isnan(), expected.isnan()), name
        known = expected.isfinite()
        assert torch.equal(actual[expected.isinf()], expected[expected.isinf()]), name
        places = torch.from_numpy(np.spacing(expected[known].abs().numpy())).double()
        is_lane_by_lane = num_bytes == 32 or not torch.cpu._is_avx512_supported()
        if is_lane_by_lane and name == "exp":  # its denormal results are 0
            places.clamp_(min=1.2e-38)
        error = ((actual.double() - exact)[known].abs() / places).max()
        assert error < 1.6, f"{name}: {error} units of the last place"


@pytest.mark.parametrize("num_bytes", [64, 32])
def test_powers_in_registers_are_right_for_every_kind_of_float(num_bytes: int) -> None:
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, (2, 2**18), dtype=np.uint32)
    bases = np.exp(random.normal(0, 3, 2**20)).astype(np.float32)
    exponents = random.normal(0, 8, 2**20).astype(np.float32)
    near_1 = (1 + random.normal(0, 1e-3, 2**18)).astype(np.float32)
    large = random.normal(0, 3e4, 2**18).astype(np.float32)
    special = np.float32([0, -0.0, 1, -1, 2, -2, 0.5, 1e-45, 3e38, np.inf, -np.inf, np.nan])
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    whole = np.float32([random.integers(1, 40, 2**12), random.integers(-9, 9, 2**12)])
    x, y = torch.from_numpy(
        np.concatenate(
            [bits.view(np.float32), [bases, exponents], [near_1, large], pairs, whole], axis=1
        )
    )
    actual = torch.empty_like(x)
    kernel = cpp.kernel(FUNCTIONS % num_bytes, "call_pow", "pppn")
    kernel(x.data_ptr(), y.data_ptr(), actual.data_ptr(), x.numel())
    exact = torch.pow(x.double(), y.double())
    expected = exact.float()
    assert torch.equal(actual.isnan(), expected.isnan())
    assert torch.equal(actual[expected.isinf()], expected[expected.isinf()])
    known = expected.isfinite()
    places = torch.from_numpy(np.spacing(expected[known].abs().numpy())).double()
    error = ((actual.double() - exact)[known].abs() / places).max()
    assert error < 0.51, f"{error} units of the last place"
    assert (actual != expected)[known].float().mean() < 1e-3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_an_extreme_is_nan_where_any_value_is(name: str, dtype: str) -> None:
    program = program_of(f"y = a.{name}(-1)", params="a", returns="(y,)")
    x = torch.randint(-99, 99, (9, 77)).to(getattr(torch, dtype))
    if x.is_floating_point():
        x[0], x[1, 3], x[2, 76], x[3, 0] = torch.inf, torch.inf, torch.nan, torch.nan
        x[4], x[5, 40], x[6] = -torch.inf, -torch.inf, torch.nan
    (result,) = run(graph_of(program, (9, 77), dtype), [x])
    torch.testing.assert_close(result, build(program)(x)[0], rtol=0, atol=0, equal_nan=True)


def test_kernels_for_several_threads_compute_the_same() -> None:
    program = program_of("y = torch.softmax(a, -1)", params="a", returns="(y,)")
    x = torch.randn(64, 512)
    (result,) = run(graph_of(program, (64, 512)), [x], **{"cpp.threads": 2})
    torch.testing.assert_close(result, torch.softmax(x, -1))


@pytest.mark.skipif(
    TorchVersion(torch.__version__) < "2.13", reason="Inductor rounds a product only from 2.13 on"
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("cube", ["torch.pow(a, 3.0)", "a ** 3", "a.pow(3)"])
def test_a_cube_in_a_low_dtype_is_rounded_as_by_eager_torch(cube: str, dtype: str) -> None:
    program = program_of(f"y = {cube}", params="a", returns="(y,)")
    x = torch.randn(1000).to(getattr(torch, dtype))
    (result,) = run(graph_of(program, (1000,), dtype), [x], emulate_precision_casts=True)
    assert torch.equal(result, build(program)(x)[0])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_batch_norm_is_that_of_eager_torch_bit_by_bit(dtype: str) -> None:
    text = "torch.nn.functional.batch_norm(a, b, c, d, e, False, 0.1, 1e-05)"
    program = program_of(f"y = {text}", params="a, b, c, d, e", returns="(y,)")
    shapes = {"a": (2, 32, 9, 9), **dict.fromkeys("bcde", (32,))}
    graph = Graph(program, specs(**{name: (shape, dtype) for name, shape in shapes.items()}))
    inputs = [torch.randn(shape).to(getattr(torch, dtype)) for shape in shapes.values()]
    inputs[2] = inputs[2].abs() + 0.1
    (result,) = run(graph, inputs, emulate_precision_casts=True)
    assert torch.equal(result, build(program)(*inputs)[0])


@pytest.mark.parametrize("weights", ["None, None", "b, c"], ids=["plain", "weights"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("size", [(16, 16), (33, 31)], ids=["even", "odd"])
def test_an_instance_norm_in_a_low_dtype_is_rounded_as_by_eager_torch(
    size: tuple[int, ...], dtype: str, weights: str
) -> None:
    text = f"torch.nn.functional.instance_norm(a, None, None, {weights}, True, 0.1, 1e-05)"
    params = "a" if weights.startswith("None") else "a, b, c"
    program = program_of(f"y = {text}", params=params, returns="(y,)")
    shapes = {"a": (2, 64, *size), **dict.fromkeys(params[3:].split(", "), (64,))}
    given = {name: (shape, dtype) for name, shape in shapes.items() if name}
    generator = torch.Generator().manual_seed(0)
    inputs = [
        (torch.randn(shape, generator=generator) + 0.4).to(getattr(torch, dtype))
        for shape, _ in given.values()
    ]
    (result,) = run(Graph(program, specs(**given)), inputs, emulate_precision_casts=True)
    (expected,) = build(program)(*inputs)
    others = (result != expected).float().mean()  # by the order of sums, and of one last product
    assert float(others) < 0.01  # without these steps a tenth to a third


def test_a_batch_norm_of_rows_lies_in_memory_as_eager_torchs_does() -> None:
    text = "torch.nn.functional.batch_norm(x, b, c, d, e, False, 0.1, 1e-05)"
    lines = ("x = a.transpose(1, 2)", f"y = {text}", "z = y.transpose(1, 2)")
    program = program_of(*lines, params="a, b, c, d, e", returns="(z,)")
    shapes = {"a": (2, 9, 5), **dict.fromkeys("bcde", (5,))}
    graph = Graph(program, specs(**{name: (shape, "float32") for name, shape in shapes.items()}))
    inputs = [torch.rand(shape) for shape in shapes.values()]
    (result,), (expected,) = run(graph, inputs), build(program)(*inputs)
    assert result.stride() == expected.stride() == (45, 1, 9)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_what_is_interpolated_lies_in_memory_as_eager_torchs_does(batch: int, mode: str) -> None:
    corners = ", align_corners=False" if mode == "bilinear" else ""
    program = program_of(
        "x = a.transpose(1, 2)",
        f"y = x.reshape({batch}, 3, 4, 5)",
        f"z = torch.nn.functional.interpolate(y, size=(8, 10), mode={mode!r}{corners})",
        params="a", returns="(z,)",
    )  # fmt: skip
    graph = graph_of(program, (batch, 20, 3))
    lowering = GraphLowering(graph, "graph")
    [span] = lowering.largest(())
    lowered = lowering.lowered(span, ())
    assert lowered is not None
    [(_, layout)] = lowered.code.outputs
    assert layout.stride == build(program)(torch.randn(batch, 20, 3))[0].stride()


@pytest.mark.parametrize(
    ("dtype", "mode", "wanted"),
    [
        ("bfloat16", "bilinear", ((0, 1), (2, 3))),
        ("float16", "bicubic", ((0, 1), (2, 3))),
        ("float32", "bilinear", ((0, 3),)),
        ("bfloat16", "nearest", ((0, 3),)),
    ],
)
def test_interpolation_between_values_of_a_low_dtype_is_left_to_torch(
    dtype: str, mode: str, wanted: tuple
) -> None:
    interpolated = f"y = torch.nn.functional.interpolate(x, (8, 8), None, {mode!r})"
    program = program_of("x = a * 2.0", interpolated, "z = y + 1.0", params="a", returns="(z,)")
    graph = Graph(program, specs(a=((1, 3, 4, 4), dtype)))
    assert GraphLowering(graph, "here").largest(()) == wanted


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_that_meets_an_index_out_of_bounds_raises_an_error(threads: int) -> None:
    """With two threads too, whose loops no error can leave: such a kernel keeps to one."""
    program = program_of("x = torch.nn.functional.embedding(b, a)", "y = x * 2.0", returns="(y,)")
    graph = Graph(program, specs(a=((8, 512), "float32"), b=((256,), "int64")))
    lowering = GraphLowering(graph, "lookup")
    options = (("cpp.threads", threads),)
    [span] = lowering.largest(options)
    lowered = lowering.lowered(span, options)
    assert lowered is not None and not fails_in_threads(lowered.code)
    launch = cpp.kernel(cpp_source(lowered.code), ENTRY)
    table, index, out = torch.randn(8, 512), torch.arange(256) % 8, torch.empty(256, 512)
    tensors = {"a": table, "b": index}
    names = {spec.name: spec.original_name for spec in lowered.cut.tensors}
    arguments = [tensors[names[name] or name] for name in lowered.code.inputs]
    launch(*arguments, out)
    assert torch.equal(out, table[index] * 2)
    index[200] = 2**40
    with pytest.raises(RuntimeError, match="index out of bounds"):
        launch(*arguments, out)
