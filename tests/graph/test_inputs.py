"""Values for the arguments of a graph: the published replay, rule by rule, and fresh ones."""

import math
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from passnet.core.records.dtypes import LARGEST, STORAGE, from_storage, storage, to_storage
from passnet.errors import GraphError
from passnet.graph.fx.from_fx import spec_from_tensor
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import InputKind, make_inputs
from passnet.graph.values.uses import find_uses
from tests.graph.programs import QUICK, graph_of, program_of

MANY = (300, 300)


def draw(kind: InputKind, *lines: str, seed: int = 0, name: str = "x", **fields: object):
    """The values of the argument `x` of a graph, as numbers (bfloat16 widened)."""
    fields = {"shape": MANY, "dtype": "float32"} | fields
    program = program_of(*(lines or ("y = torch.relu(x)",)), params=name, returns="(x,)")
    spec = TensorSpec(name, **fields)  # type: ignore[arg-type]
    [value] = make_inputs(Graph(program, (spec,)), kind, seed)
    assert isinstance(value, np.ndarray) and value.shape == spec.shape
    assert value.dtype == storage(spec.dtype)
    return from_storage(value, spec.dtype)


@pytest.mark.parametrize("dtype", STORAGE)
def test_recorded_data_comes_first(dtype: str):
    data = (True, False) if dtype == "bool" else (1, 2)
    fields = {"shape": (1, 2), "dtype": dtype, "mean": 5.0, "std": 2.0, "min_val": 7, "max_val": 9}
    assert draw("recorded", data=data, **fields).tolist() == [list(data)]


def test_data_that_the_dtype_cannot_hold_is_refused():
    for shape in ((2,), ()):
        with pytest.raises(GraphError, match="argument x: data is no int8"):
            draw("recorded", shape=shape, dtype="int8", data=(300,) * (1 + bool(shape)))


@pytest.mark.parametrize("low, high", [(-3, 2), (253, 255), (255, 255)])
def test_recorded_integers_are_uniform_within_their_range_ends_included(low: int, high: int):
    dtype = "int64" if low < 0 else "uint8"
    values, counts = np.unique(
        draw("recorded", dtype=dtype, min_val=low, max_val=high), return_counts=True
    )
    assert values.tolist() == list(range(low, high + 1))
    assert counts.min() > 0.95 * counts.max()


def test_recorded_truth_values_are_fair_coins():
    assert abs(draw("recorded", dtype="bool").mean() - 0.5) < 0.01


def test_a_recorded_spread_of_zero_is_a_constant():
    assert np.unique(draw("recorded", mean=0.75, std=0)).tolist() == [0.75]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_recorded_floats_have_the_mean_and_a_fifth_of_the_spread(dtype: str):
    values = draw("recorded", dtype=dtype, mean=3.0, std=2.0).astype(np.float64)
    assert abs(values.mean() - 3) < 0.01 and abs(values.std() - 0.4) < 0.01


def test_recorded_floats_without_statistics_are_narrow_around_zero():
    values = draw("recorded")
    assert abs(values.mean()) < 0.01 and abs(values.std() - 0.2) < 0.01


def test_recorded_floats_that_must_be_positive_are_so_unless_others_were_recorded():
    values = draw("recorded", "y = x.rsqrt()")
    assert values.min() >= 0.5 and values.max() <= 1.5
    assert draw("recorded", "y = x.rsqrt()", mean=0.0, std=1.0).min() < 0


def test_recorded_floats_are_clamped_to_a_hundred():
    values = draw("recorded", mean=0.0, std=1e4)
    assert (values.min(), values.max()) == (-100, 100)
    assert np.unique(draw("recorded", mean=-3e38, std=0.1)).tolist() == [-100]
    assert np.isfinite(draw("recorded", mean=-1e38, std=3e38)).all()


def test_recorded_floats_stay_above_their_recorded_minimum():
    assert draw("recorded", mean=0.1, std=5.0, min_val=0.0).min() == 0


@pytest.mark.parametrize("kind", ["recorded", "fresh"])
@pytest.mark.parametrize("fields", [{"mean": 1e-5, "std": 0.0}, {"data": (1e-5,)}])
def test_a_scalar_keeps_its_recorded_value(kind: InputKind, fields: dict[str, object]):
    assert draw(kind, shape=(), dtype="float64", **fields) == 1e-5


@pytest.mark.parametrize("kind", ["recorded", "fresh"])
def test_a_symbolic_size_is_an_integer(kind: InputKind):
    program = program_of(params="n: torch.SymInt", returns="(n,)")
    [value] = make_inputs(Graph(program, (TensorSpec("n", (), "int64", data=(4,)),)), kind, 0)
    assert value == 4 and type(value) is int
    with pytest.raises(GraphError, match="argument n is a SymInt without a recorded value"):
        make_inputs(Graph(program, (TensorSpec("n", (), "int64"),)), kind, 0)


def test_arguments_without_specs_are_refused():
    with pytest.raises(GraphError, match="no shapes and dtypes"):
        make_inputs(Graph(program_of(), ()), "fresh", 0)


@pytest.mark.parametrize("kind", ["recorded", "fresh"])
@pytest.mark.parametrize("dtype", STORAGE)
def test_the_same_seed_gives_the_same_values_and_another_seed_others(kind: InputKind, dtype: str):
    fields = (
        {} if dtype.startswith(("float", "bfloat", "complex")) else {"min_val": 0, "max_val": 9}
    )
    first, again, different = (draw(kind, dtype=dtype, seed=seed, **fields) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, different)
    assert len(np.unique(first)) > 1


def test_two_arguments_of_one_shape_differ():
    first, second = make_inputs(graph_of(program_of()), "fresh", 0)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_fresh_floats_are_unit_scale_whatever_was_recorded(dtype: str):
    values = draw("fresh", dtype=dtype, mean=3.0, std=0.0).astype(np.float64)
    ordinary = np.delete(values, np.s_[1::4], axis=-2)
    assert abs(ordinary.mean()) < 0.02 and abs(ordinary.std() - 1) < 0.02


def test_every_fourth_fresh_row_is_small_and_extreme_rows_are_large_or_shifted():
    values = draw("fresh")
    assert abs(values[1::4].std() * 1e3 - 1) < 0.02
    extreme = draw("extreme")
    assert abs(extreme[1::4].std() * 1e3 - 1) < 0.02
    assert abs(extreme[2::4].std() / 30 - 1) < 0.02
    assert abs(extreme[3::4].mean() - 1000) < 0.1 and abs(extreme[3::4].std() - 1) < 0.02
    np.testing.assert_array_equal(extreme[::4], values[::4])


ROLES = {
    "a weight has the scale of its fan-in": (
        "y = torch.nn.functional.linear(a, x)",
        lambda v: abs(v.std() * math.sqrt(MANY[1]) - 1) < 0.02,
    ),
    "the scale of a norm is around one": (
        "y = torch.nn.functional.layer_norm(a, (300,), x, b)",
        lambda v: abs(v.mean() - 1) < 0.01 and abs(v.std() - 0.25) < 0.01,
    ),
    "the shift of a norm is around zero": (
        "y = torch.nn.functional.layer_norm(a, (300,), weight=b, bias=x)",
        lambda v: abs(v.mean()) < 0.01 and abs(v.std() - 0.25) < 0.01,
    ),
    "a variance is positive": (
        "y = torch.nn.functional.batch_norm(a, b, x, b, b, False)",
        lambda v: v.min() >= 0.5 and v.max() <= 1.5,
    ),
    "the operand of a root is positive": (
        "y = x.rsqrt()",
        lambda v: v.min() >= 0.5 and v.max() <= 1.5,
    ),
}


@pytest.mark.parametrize("claim", ROLES)
def test_fresh(claim: str):
    line, holds = ROLES[claim]
    program = program_of(line, params="a, b, x", returns="(y,)")
    assert holds(make_inputs(graph_of(program, MANY), "fresh", 0)[2])


def test_what_was_never_negative_is_positive():
    assert draw("fresh", mean=0.4, std=0.1, min_val=0.0).min() >= 0.5


def test_the_limit_of_memory_is_on_what_drawing_takes():
    """A boolean takes a byte, and a random number in between takes more."""
    program = program_of("y = torch.sum(x)", params="x", returns="(y,)")
    graph = Graph(program, (TensorSpec("x", (2**33,), "bool"),))
    with pytest.raises(GraphError, match="drawing the arguments takes .* bytes, more than"):
        make_inputs(graph, "fresh", 0)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
@pytest.mark.parametrize("share", [0.125, 0.75])
@pytest.mark.parametrize("kind", ["recorded", "fresh"])
def test_a_large_mask_is_true_about_as_often_as_at_capture(kind, share, dtype):
    values = torch.arange(4096).reshape(1, -1) < share * 4096
    spec = spec_from_tensor("x", values.to(dtype))
    program = program_of("y = torch.sum(x)", params="x", returns="(y,)")
    [drawn] = make_inputs(Graph(program, (spec,)), kind, 0)
    assert abs(float(np.mean(drawn)) - share) < 0.03


def test_a_mask_that_was_all_true_is_all_true_as_recorded():
    spec = spec_from_tensor("x", torch.ones(2, 128, dtype=torch.bool))
    program = program_of("y = torch.sum(x)", params="x", returns="(y,)")
    [drawn] = make_inputs(Graph(program, (spec,)), "recorded", 0)
    assert np.all(drawn)


@pytest.mark.parametrize("values", [torch.linspace(0, 24_000, 201), torch.full((8, 8), 3e4)])
def test_large_numbers_without_a_negative_mean_are_no_mask(values: torch.Tensor):
    spec = spec_from_tensor("x", values)
    program = program_of("y = torch.tanh(x)", params="x", returns="(y,)")
    [fresh] = make_inputs(Graph(program, (spec,)), "fresh", 0)
    assert np.unique(fresh).size > 50


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_fresh_mask_is_zero_or_minus_the_largest_number(dtype: str):
    values = draw("fresh", dtype=dtype, mean=-1e37, std=1e38).astype(np.float64)
    masked = values != 0
    assert abs(masked.mean() - 0.25) < 0.01
    assert np.unique(values[masked]).tolist() == [-LARGEST[dtype]]


INDICES = {
    "embedding": ("y = torch.nn.functional.embedding(x, t)", 5),
    "embedding by keyword": ("y = torch.nn.functional.embedding(weight=t, input=x)", 5),
    "embedding with an offset": ("z = x + 2; y = torch.nn.functional.embedding(z, t)", 3),
    "embedding of a view": ("z = x.view(-1); y = torch.nn.functional.embedding(z, t)", 5),
    "embedding of an alias": ("z = x; y = torch.nn.functional.embedding(z, t)", 5),
    "the smaller of two tables": (
        "y = torch.nn.functional.embedding(x, t); z = torch.nn.functional.embedding(x, u)",
        4,
    ),
    "embedding by keywords": ("y = torch.embedding(indices=x, weight=t)", 5),
    "index_select": ("y = t.index_select(1, x)", 7),
    "gather": ("y = torch.gather(t, 0, x)", 5),
    "an index": ("y = t[x]", 5),
    "a second index": ("y = t[(slice(None, None, None), x)]", 7),
}


@pytest.mark.parametrize("kind", ["recorded", "fresh"])
@pytest.mark.parametrize("claim", INDICES)
@pytest.mark.parametrize("recorded", [{}, {"min_val": 0, "max_val": 99}])
def test_integers_stay_within_what_they_index(claim: str, kind: InputKind, recorded):
    line, bound = INDICES[claim]
    program = program_of(line, params="t, u, x", returns="(y,)")
    specs = (
        TensorSpec("t", (5, 7), "float32"),
        TensorSpec("u", (4, 7), "float32"),
        TensorSpec("x", (999,), "int64", **recorded),
    )
    graph = Graph(program, specs)
    assert find_uses(graph)["x"].bound == bound
    assert np.unique(make_inputs(graph, kind, 0)[2]).tolist() == list(range(bound))


def test_integers_that_fit_nothing_are_refused():
    with pytest.raises(GraphError, match="argument x: no integer lies within"):
        draw("fresh", dtype="int64", min_val=5, max_val=4)


def test_what_is_computed_is_no_index_of_the_argument():
    program = program_of(
        "z = x * 2", "y = torch.nn.functional.embedding(z, t)", params="x, t", returns="(y,)"
    )
    assert find_uses(graph_of(program, dtype="int64"))["x"].bound is None


@QUICK
@given(st.lists(st.floats(width=32), min_size=1))
def test_bfloat16_is_rounded_as_torch_rounds(values: list[float]):
    numbers = np.array(values, np.float32)
    check_bfloat16(numbers)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_number_of_no_dimension_stays_an_array(dtype: str):
    stored = to_storage(np.array(-1.5, np.float32), dtype)
    assert isinstance(stored, np.ndarray) and stored.shape == ()
    again = from_storage(stored, dtype)
    assert isinstance(again, np.ndarray) and again == -1.5
    assert draw("recorded", shape=(), dtype=dtype, data=(-1.5,)) == -1.5


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("kind", get_args(InputKind))
def test_an_argument_of_no_dimension_is_an_array(kind: InputKind, dtype: str):
    for line in ("y = torch.relu(x)", "y = torch.sqrt(x)"):
        draw(kind, line, shape=(), dtype=dtype)  # which sees to it
        draw(kind, line, shape=(), dtype=dtype, mean=None, std=0.5, min_val=0, max_val=1)


def check_bfloat16(numbers: np.ndarray) -> None:
    """The stored bits are torch's, and mean what torch means by them."""
    stored = to_storage(numbers, "bfloat16")
    torch_values = torch.from_numpy(numbers).to(torch.bfloat16)
    is_nan = np.isnan(numbers)
    assert np.array_equal(stored[~is_nan], torch_values.view(torch.uint16).numpy()[~is_nan])
    assert np.array_equal(
        from_storage(stored, "bfloat16"), torch_values.float().numpy(), equal_nan=True
    )


def test_bfloat16_is_right_for_random_bits_and_special_numbers():
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    special = np.array([0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x7F800001, 0xFFFFFFFF, 1, 0x3F808000])
    check_bfloat16(np.concatenate([bits, special.astype(np.uint32)]).view(np.float32))


def test_an_unknown_dtype_is_refused():
    with pytest.raises(GraphError, match="dtype float8 is none of float64"):
        storage("float8")


@pytest.mark.parametrize(
    ("rows", "bound"),
    [
        ("x = table", 7),
        ("x = table\n        table = table[0:5]", 7),
        ("table = table[0:5]\n        x = table", None),
        ("x = table\n        x = torch.cat([x, x])", None),
    ],
)
def test_the_shape_of_a_table_is_that_of_the_value_that_bears_its_name(
    rows: str, bound: int | None
) -> None:
    text = f"""
import torch

class GraphModule(torch.nn.Module):
    def forward(self, table: torch.Tensor, index: torch.Tensor):
        {rows}
        y = torch.nn.functional.embedding(index, x)
        return (y,)
"""
    tensors = TensorSpec("table", (7, 4), "float32"), TensorSpec("index", (3,), "int64")
    use = find_uses(Graph(parse_program(text), tensors))["index"]
    assert (use.bound, use.is_pinned) == (bound, bound is None)
