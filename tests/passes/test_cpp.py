"""C++ kernels: compiled once, refused in one sentence, and as accurate as the header says."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from passnet.core.records.folders import CACHE_VARIABLE
from passnet.errors import PassError
from passnet.passes import cpp
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from tests.passes.kernels import SCALE

EXAMPLES = Path(__file__).parents[2] / "examples" / "passes"
FUNCTIONS = ("exp", "tanh", "erf", "sigmoid", "silu", "rounded<bf16>", "rounded<f16>")
SOURCE = '#include "passnet_kernel.h"\nusing namespace passnet;\n' + "\n".join(
    f"""
extern "C" void map_{index}(const float* x, float* out, int64_t size) {{
#pragma omp simd
  for (int64_t i = 0; i < size; i++) out[i] = passnet::{name}(x[i]);
}}"""
    for index, name in enumerate(FUNCTIONS)
)
SOURCE += """
extern "C" void widen(const bf16* x, float* out, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; i++) store(out + i, load(x + i));
}
extern "C" void narrow(const float* x, bf16* out, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; i++) store(out + i, load(x + i));
}
extern "C" void widen16(const f16* x, float* out, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; i++) store(out + i, load(x + i));
}
extern "C" void narrow16(const float* x, f16* out, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; i++) store(out + i, load(x + i));
}
"""
NARROW = {"narrow": torch.bfloat16, "narrow16": torch.float16}


@pytest.fixture(scope="module")
def header(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str, torch.Tensor], torch.Tensor]]:
    """Runs a function of the header on every element of a tensor."""

    def run(name: str, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape, dtype=NARROW.get(name, torch.float32))
        symbol = f"map_{FUNCTIONS.index(name)}" if name in FUNCTIONS else name
        cpp.kernel(SOURCE, symbol, "ppn")(x.data_ptr(), out.data_ptr(), x.numel())
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield run


def test_a_kernel_gets_pointers_integers_and_both_kinds_of_floats(cache: Path) -> None:
    x, out = torch.arange(4.0), torch.empty(3)
    cpp.kernel(SCALE, "scale", "ppnfd")(x.data_ptr(), out.data_ptr(), 3, 0.5, 0.25)
    assert out.tolist() == [0.25, 0.75, 1.25]


def test_a_compile_error_is_told_in_the_words_of_the_compiler(cache: Path) -> None:
    with pytest.raises(PassError, match=r"kernel does not compile: kernel\.cpp:3:\d+: error") as it:
        cpp.kernel('#include "passnet_kernel.h"\n\nvoid broken( {}\n', "broken", "")
    assert "\n" not in str(it.value) and str(cache) not in str(it.value)
    assert list(cache.iterdir()) == []


def test_a_kernel_may_have_memory_of_its_own(cache: Path) -> None:
    source = """
#include "inductor_kernel.h"
extern "C" void copy(const float* from, float* to, int64_t n) {
  auto memory = std::make_unique<float[]>(n);
  for (int64_t i = 0; i < n; i++) memory[i] = from[i];
  for (int64_t i = 0; i < n; i++) to[i] = memory[i];
}
"""
    given, got = torch.rand(7), torch.empty(7)
    cpp.kernel(source, "copy")(given, got, 7)
    assert torch.equal(given, got)


def test_a_function_that_is_not_there_is_named(cache: Path) -> None:
    with pytest.raises(PassError, match='kernel shift: no extern "C" function'):
        cpp.kernel(SCALE, "shift", "ppn")


def test_a_function_without_c_linkage_is_not_found(cache: Path) -> None:
    with pytest.raises(PassError, match='kernel scale: no extern "C" function'):
        cpp.kernel(SCALE.replace('extern "C"', ""), "scale", "ppn")


def test_an_unknown_letter_of_a_signature_is_named_before_anything_is_compiled(
    cache: Path,
) -> None:
    with pytest.raises(PassError, match="kernel scale: 'x' of its signature is none of"):
        cpp.kernel(SCALE, "scale", "ppx")
    assert not cache.exists()


def test_no_compiler_says_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(PassError, match="need g..; install it, or name another compiler in CXX"):
        cpp.kernel(SCALE, "scale", "ppnfd")


def test_kernels_are_told_apart_by_dtype(cache: Path) -> None:
    source = SCALE.replace("scale(", "scale_float32(") + SCALE.replace("scale(", "scale_bfloat16(")
    assert cpp.kernels(source, "scale", "ppnfd").keys() == {torch.float32, torch.bfloat16}
    source += SCALE.replace("scale(", "scale_float16(")
    found = cpp.kernels(source, "scale", "ppnfd").keys()
    assert found == {torch.float32, torch.bfloat16, torch.float16}
    with pytest.raises(PassError, match="kernel scale_float32"):
        cpp.kernels(SCALE, "scale", "ppnfd")


def floats(start: float, stop: float) -> torch.Tensor:
    """Two million numbers, evenly spaced, and those around 0 in every magnitude."""
    small = torch.logspace(-30, 0, 10_000)
    small = torch.cat((small, -small))
    even = torch.linspace(start, stop, 2_000_000)
    return torch.cat((even, small[(small > start) & (small < stop)]))


def test_exp_is_within_2e_7_of_the_value(header: Callable[..., torch.Tensor]) -> None:
    x = floats(-86.9, 88.7)
    expected = x.double().exp()
    error = (header("exp", x).double() - expected).abs() / expected
    assert error.max() < 2e-7


def test_tanh_is_within_3e_7(header: Callable[..., torch.Tensor]) -> None:
    x = floats(-20, 20)
    assert (header("tanh", x).double() - x.double().tanh()).abs().max() < 3e-7


def test_erf_is_within_1e_6(header: Callable[..., torch.Tensor]) -> None:
    x = floats(-8, 8)
    assert (header("erf", x).double() - x.double().erf()).abs().max() < 1e-6


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_sigmoid_and_silu_are_within_4e_7_of_the_value(
    header: Callable[..., torch.Tensor], name: str
) -> None:
    x = floats(-80, 80)
    expected = getattr(torch.nn.functional, name)(x.double())
    error = (header(name, x).double() - expected).abs() / expected.abs().clamp(min=1e-30)
    assert error.max() < 4e-7


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sigmoid", "silu"])
def test_infinities_and_nan_give_what_they_give_in_torch(
    header: Callable[..., torch.Tensor], name: str
) -> None:
    x = torch.tensor([math.inf, -math.inf, math.nan, 1e30, -1e30, 3e38, 0.0, -0.0] * 8)
    function = torch.nn.functional.silu if name == "silu" else getattr(torch, name)
    torch.testing.assert_close(header(name, x), function(x), rtol=0, atol=0, equal_nan=True)


def test_exp_is_zero_below_and_infinite_above_its_range(
    header: Callable[..., torch.Tensor],
) -> None:
    x = torch.tensor([-87.01, -104.0, -1000.0, 88.8, 89.0, 1000.0])
    assert header("exp", x).tolist() == [0, 0, 0, math.inf, math.inf, math.inf]


def test_every_bfloat16_is_loaded_as_torch_loads_it(header: Callable[..., torch.Tensor]) -> None:
    bits = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    x = bits.view(torch.bfloat16)
    assert torch.equal(header("widen", x).view(torch.int32), x.float().view(torch.int32))


def test_every_bfloat16_is_stored_as_itself(header: Callable[..., torch.Tensor]) -> None:
    bits = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    x = bits.view(torch.bfloat16)
    stored = header("narrow", x.float())
    finite = ~x.isnan()
    assert torch.equal(stored.view(torch.int16)[finite], bits[finite])
    assert stored[~finite].isnan().all()


@pytest.mark.parametrize("name", ["narrow", "rounded<bf16>", "narrow16", "rounded<f16>"])
def test_floats_are_rounded_as_torch_rounds(header: Callable[..., torch.Tensor], name: str) -> None:
    dtype = torch.float16 if "16" in name.replace("bf16", "") else torch.bfloat16
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 2_000_000, dtype=np.uint32)
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype).float()
    lower = every.numpy().view(np.uint32)
    step = 0x8000 if dtype is torch.bfloat16 else 0x1000
    near = [lower + np.uint32(step + each) for each in (0, 1, -1)]  # halfway to the next
    x = torch.from_numpy(np.concatenate((bits, *near)).view(np.float32))
    actual = header(name, x).to(dtype)
    expected = x.to(dtype)
    assert torch.equal(actual.isnan(), x.isnan())
    is_number = ~x.isnan()
    assert torch.equal(actual.view(torch.int16)[is_number], expected.view(torch.int16)[is_number])


def test_every_float16_becomes_its_float(header: Callable[..., torch.Tensor]) -> None:
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16)
    out = header("widen16", every)
    assert torch.equal(out.isnan(), every.isnan())
    assert torch.equal(out[~out.isnan()], every.float()[~every.isnan()])


def test_the_gelu_example_is_equal_to_eager_torch_for_every_bfloat16_up_to_20(cache: Path) -> None:
    [gelu] = load_passes(inspect_folder(EXAMPLES / "gelu_tanh"))
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    x = x[x.abs() <= 20]
    assert len(x) > 30_000
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    expected = half * (1.0 + torch.tanh(0.7978845608028654 * inner))
    actual = gelu.replacement(x)
    assert torch.equal(actual.view(torch.int16), expected.view(torch.int16))


TYPES = {
    "const float*": torch.float32, "double*": torch.float64, "const _Float16*": torch.float16,
    "const f16*": torch.float16,
    "bf16*": torch.bfloat16, "const bool*": torch.bool, "int8_t*": torch.int8,
    "const uint8_t*": torch.uint8, "int16_t*": torch.int16, "int32_t*": torch.int32,
    "const int64_t*": torch.int64,
}  # fmt: skip


def test_a_pointer_takes_tensors_of_its_dtype_alone(cache: Path) -> None:
    params = ", ".join(f"{kind} p{number}" for number, kind in enumerate(TYPES))
    source = (
        '#include "passnet_kernel.h"\nusing namespace passnet;\n'
        f'extern "C" void take({params}, const char* any, int64_t n, float f) {{}}\n'
    )
    take = cpp.kernel(source, "take")
    right = [torch.zeros(2, dtype=dtype) for dtype in TYPES.values()]
    for dtype in TYPES.values():
        take(*right, torch.zeros(2, dtype=dtype), 3, 0.5)
    for number, dtype in enumerate(TYPES.values()):
        for wrong in (torch.zeros(2, dtype=torch.complex64), torch.zeros(2).to("meta"), 8, None):
            given: list[object] = [*right, right[0], 3, 0.5]
            given[number] = wrong
            words = rf"kernel take: argument {number + 1} must be a tensor of {dtype} on the CPU"
            with pytest.raises(TypeError, match=words):
                take(*given)
    with pytest.raises(TypeError):
        take(*right, right[0], 3)


def test_a_parameter_that_nothing_can_stand_for_is_named(cache: Path) -> None:
    source = 'struct Pair { int a, b; };\nextern "C" void take(float* x, Pair* y) {}\n'
    with pytest.raises(PassError, match="kernel take: parameter 2 is of a type that no tensor"):
        cpp.kernel(source, "take")
    with pytest.raises(PassError, match='kernel other: no extern "C" function'):
        cpp.kernel(source, "other")


def test_typed_kernels_of_both_dtypes_are_compiled_once(cache: Path) -> None:
    source = SCALE.replace("scale(", "scale_float32(") + SCALE.replace("scale(", "scale_bfloat16(")
    made = cpp.kernels(source, "scale")
    x, out = torch.arange(4.0), torch.empty(3)
    made[torch.float32](x, out, 3, 0.5, 0.25)
    assert out.tolist() == [0.25, 0.75, 1.25]
    assert len(list(cache.iterdir())) == 1


def test_the_text_that_a_kernel_returns_is_raised_as_an_error(cache: Path) -> None:
    source = (
        "#include <cstdint>\n"
        'extern "C" const char* first(const int64_t* x, int64_t most) {\n'
        '  return x[0] > most ? "too large" : nullptr;\n}\n'
    )
    first = cpp.kernel(source, "first")
    first(torch.tensor([3]), 3)
    with pytest.raises(RuntimeError, match="kernel first: too large"):
        first(torch.tensor([4]), 3)


@pytest.mark.parametrize(
    ("function", "most_ulp"), [("expm1", 1.6), ("asin", 1.5), ("acos", 1.5), ("atan", 2.5)]
)
def test_a_function_of_loops_is_right_for_every_kind_of_float(
    function: str, most_ulp: float, cache: Path
) -> None:
    source = """
#include "inductor_kernel.h"
extern "C" void run(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = inductor::FUNCTION(x[i]);
}
""".replace("FUNCTION", function)
    bits = np.arange(0, 2**32, 4096, dtype=np.uint32) + np.uint32(1234)
    special = np.float32(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 88.7, 88.73, -17.4, -88.0, 1.0, -1.0, 0.5, -0.5]
    )
    x = torch.from_numpy(np.concatenate([bits.view(np.float32), special]))
    actual = torch.empty_like(x)
    cpp.kernel(source, "run")(x, actual, x.numel())
    exact = getattr(torch, function)(x.double())
    expected = exact.float()
    assert torch.equal(actual.isnan(), expected.isnan())
    assert torch.equal(actual[expected.isinf()], expected[expected.isinf()])
    assert torch.equal(actual.signbit()[expected == 0], expected.signbit()[expected == 0])
    known = expected.isfinite()
    places = torch.from_numpy(np.spacing(expected[known].abs().numpy())).double()
    assert ((actual.double() - exact)[known].abs() / places).max() < most_ulp
