"""Any meta and JSON files beside a `model.py`: specs within the limits, or a GraphError."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st

from passnet.errors import GraphError
from passnet.graph.spec import Graph, Param, Program, Ref, TensorSpec
from passnet.graph.text.files import read_sample, write_sample
from passnet.graph.text.meta import DTYPE_BYTES, MAX_DIMS, MAX_ELEMENTS, parse_meta, render_meta
from passnet.graph.values.fake import infer_shapes
from passnet.graph.values.inputs import MAX_INPUT_BYTES, make_inputs
from tests.fuzz.hostile import ARGUMENTS, LINES, fuzz, mutations, nothing_runs, peak_of
from tests.graph.programs import program_of, text_of

DRAWN_ELEMENTS = 2**16
"""Largest argument that the tests draw values for."""

BYTES_ON_TOP = 32
"""Bytes an element that drawing may take on top of the values, as `MAX_INPUT_BYTES` says."""

SIZES = st.sampled_from([0, 1, 2, 3, 7, 255, 2**20, 2**40, 2**60, 2**64, 10**30, -1])
SHAPES = st.one_of(
    st.lists(st.integers(0, 4), max_size=3).map(str),
    st.lists(SIZES, max_size=4).map(str),
    st.sampled_from(
        ["[True]", "[[2]]", "[1.0]", "()", "(3,)", "[1] * 9", str([1] * 70), str([9] * 3000), "2"]
    ),
)
NUMBERS = st.one_of(
    st.sampled_from(
        ["0", "-1", "1e999", "-1e308", "3.4e38", "1e30", "float('nan')", "-float('nan')"]
        + ["float('inf')", "float('-inf')", "True", "None", str(2**63), str(-(2**64)), "10" * 300]
        + ["0x" + "f" * 5000, "1j", "'1'", "[1]", "float('1')", "float('nan', x=1)"]
    ),
    st.floats(allow_nan=False).map(repr).filter(lambda text: "inf" not in text),
)
DATA = st.one_of(
    st.just("None"),
    st.lists(NUMBERS, max_size=4).map(lambda numbers: f"[{', '.join(numbers)}]"),
    st.sampled_from(["[0, 1]" * 2, "[[0]]", "[" + "1," * 5000 + "]", "1", "set()", "[0] * 10**9"]),
)
VALUES = {
    "name": st.sampled_from(["'a'", "'a'", "'a'", "'b'", "''", "'a b'", "'\\ud800'", "1", "'if'"]),
    "shape": SHAPES,
    "dtype": st.sampled_from(
        [f"'torch.{name}'" for name in DTYPE_BYTES]
        + ["'torch.load'", "'__class__'", "'torch.torch.int8'", "torch.float32", "None"]
    ),
    "device": st.sampled_from(["'cpu'", "'cuda:0'", "'\\n'", "None", "open('x', 'w')"]),
    "mean": NUMBERS,
    "std": NUMBERS,
    "min_val": NUMBERS,
    "max_val": NUMBERS,
    "data": DATA,
    "original_name": st.sampled_from(["'x'", "'L_a_ b'", "'\\x00'", "None", "1"]),
    "keys": st.just("('name',)"),
}


@st.composite
def metas(draw: st.DrawFn) -> str:
    """The text of a meta file that describes an argument in an odd way."""
    fields = {"name": "'a'", "shape": "[2]", "dtype": "'torch.float32'"}
    for key in draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=5)):
        fields[key] = draw(VALUES[key])
    lines = [f"    {key} = {value}\n" for key, value in fields.items()]
    return "class Program_weight_tensor_meta_a:\n" + "".join(lines)


HEAD = "class A:\n    name = 'a'\n    shape = [1]\n    dtype = 'torch.int8'\n"


def checked_specs(text: str) -> tuple[TensorSpec, ...]:
    """The specs of a text, none if it is refused; the claim is checked on the way."""
    with nothing_runs():
        try:
            specs = parse_meta(text, "weight_meta.py")
        except GraphError as error:
            assert str(error).startswith("weight_meta.py:")
            return ()
        assert parse_meta(render_meta(specs), "weight_meta.py") == specs
    for spec in specs:
        assert len(spec.shape) <= MAX_DIMS and 0 <= spec.num_elements <= MAX_ELEMENTS
        assert spec.dtype in DTYPE_BYTES
    return specs


def use(specs: tuple[TensorSpec, ...], annotation: str | None) -> None:
    """Run the argument under fake tensors and draw it; either works or is a GraphError."""
    params = tuple(Param(spec.name, annotation) for spec in specs)
    graph = Graph(Program(params, (), tuple(Ref(param.name) for param in params)), specs)
    for call in uses_of(graph):
        try:
            call()
        except GraphError:
            continue


def uses_of(graph: Graph) -> list[Callable[[], object]]:
    """What is done with a graph: the fake run, and both kinds of inputs unless they are large."""
    elements = sum(spec.num_elements for spec in graph.tensors)
    calls: list[Callable[[], object]] = [lambda: infer_shapes(graph)]
    if elements <= DRAWN_ELEMENTS or elements > MAX_INPUT_BYTES:
        calls.append(lambda: make_inputs(graph, "recorded", 0))
        calls.append(lambda: make_inputs(graph, "fresh", 0))
    return calls


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@fuzz(120, metas(), st.sampled_from([None, "torch.SymInt"]))
def test_an_odd_spec_is_used_or_refused(text: str, annotation: str | None):
    use(checked_specs(text), annotation)


@fuzz(150, mutations(metas()) | st.lists(st.sampled_from(LINES)).map("\n".join))
def test_a_changed_meta_file_is_taken_or_refused(text: str):
    checked_specs(text)


@pytest.mark.parametrize("value", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_a_hostile_value_is_taken_as_data_or_refused(value: str):
    for key in VALUES:
        checked_specs(f"{HEAD}    {key} = {value}")
        checked_specs(
            f"class A({value}):\n    name = 'a'\n    shape = [{value}]\n    dtype = {value}"
        )


def spec_of(**fields: object) -> TensorSpec:
    """A spec as it stands in a file."""
    return TensorSpec(**({"name": "a", "shape": (1,), "dtype": "float32"} | fields))  # type: ignore[arg-type]


ODD = {
    "no elements and a mean": spec_of(shape=(0,), mean=0.5),
    "an integer beyond its type": spec_of(shape=(), dtype="int64", mean=1e30),
    "an infinite integer": spec_of(shape=(), dtype="int64", mean=math.inf),
    "a byte beyond its type": spec_of(shape=(), dtype="uint8", mean=300),
    "infinite bounds": spec_of(dtype="int64", min_val=-math.inf, max_val=math.inf),
    "a spread of the largest number": spec_of(std=1.7e308, mean=-1.7e308),
    "as many dimensions as are allowed": spec_of(shape=(1,) * MAX_DIMS, dtype="complex64"),
    "no elements, and large sizes": spec_of(shape=(0, MAX_ELEMENTS)),
}
"""Specs that once crashed the fake run or the drawing."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("claim", ODD)
@pytest.mark.parametrize("annotation", [None, "torch.SymInt"])
def test_used_or_refused_since_it_was_found(claim: str, annotation: str | None):
    use((ODD[claim],), annotation)


HUGE = {
    "a size beyond the limit": ("[2**60]", ":3: expected a literal"),
    "a number of elements beyond the limit": (f"[{2**60}]", "more than 1099511627776 elements"),
    "no elements, for a size beyond it": (f"[0, {2**60}]", "more than 1099511627776 elements"),
    "a size of a hundred bits": (f"[0, {2**100}]", "more than 64 bits"),
    "thousands of dimensions": (str([9] * 5000), "5000 dimensions, more than 32"),
    "a size of thousands of digits": (f"[0x{'f' * 5000}]", "more than 64 bits"),
}


@pytest.mark.parametrize("claim", HUGE)
def test_a_huge_shape_is_refused_before_anything_is_made(claim: str):
    shape, message = HUGE[claim]
    text = f"class A:\n    name = 'a'\n    shape = {shape}\n    dtype = 'torch.int8'\n"

    def refused() -> None:
        with pytest.raises(GraphError, match=message):
            parse_meta(text, "weight_meta.py")

    assert peak_of(refused)[1] < 2**23


def test_arguments_that_are_too_large_together_are_refused(tmp_path: Path):
    specs = tuple(TensorSpec(name, (MAX_ELEMENTS // 2,), "int8") for name in "abc")
    graph = Graph(program_of(params="a, b, c"), specs)
    with pytest.raises(GraphError, match="the arguments have more than 1099511627776 elements tog"):
        infer_shapes(graph)
    for name, text in {
        "model.py": text_of(params="a, b, c"),
        "weight_meta.py": render_meta(specs),
        "graph_net.json": "{}",
    }.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(GraphError, match="the arguments have more than 1099511627776 elements tog"):
        read_sample(tmp_path)


def test_arguments_of_terabytes_run_under_fake_tensors_and_are_not_drawn():
    graph = Graph(
        program_of("x = torch.add(a, b)"),
        tuple(TensorSpec(name, (2**38,), "float64") for name in "ab"),
    )
    shapes, peak = peak_of(lambda: infer_shapes(graph))
    assert shapes[0][0].shape == (2**38,) and peak < 2**26

    def refused() -> None:
        for kind in ("recorded", "fresh"):
            with pytest.raises(GraphError, match=f"more than {MAX_INPUT_BYTES}"):
                make_inputs(graph, kind, 0)  # type: ignore[arg-type]

    assert peak_of(refused)[1] < 2**20


@pytest.mark.parametrize("dtype", DTYPE_BYTES)
@pytest.mark.parametrize("kind", ["recorded", "fresh"])
def test_drawing_takes_no_more_than_stated(dtype: str, kind: str):
    size = 2**20
    for spec in (spec_of(dtype=dtype, shape=(size,)), spec_of(dtype=dtype, shape=(size,), std=1e9)):
        graph = Graph(program_of(params="a"), (spec,))
        _, peak = peak_of(lambda graph=graph: make_inputs(graph, kind, 0))  # type: ignore[arg-type,misc]
        assert peak < size * (DTYPE_BYTES[dtype] + BYTES_ON_TOP) + 2**20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
JSON_TEXTS = st.one_of(
    JSON.map(json.dumps),
    st.text(max_size=10),
    st.sampled_from(
        ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "NaN", '{"a": 1e999}', '"\\ud800"', "{}"]
        + ['{"a": ' + "9" * 5000 + "}", '{"\\ud800": "\\udfff"}', '{"a": 1, "a": 2}', "{\0}"]
    ),
)


@fuzz(100, JSON_TEXTS, JSON_TEXTS, st.text(max_size=20))
def test_any_text_in_the_other_files_is_taken_or_refused(info: str, sources: str, digest: str):
    folder = Path(tempfile.mkdtemp())
    files = {
        "model.py": text_of(params="a", returns="(a,)"),
        "weight_meta.py": render_meta((spec_of(),)),
        "graph_net.json": info,
        "subgraph_sources.json": sources,
        "graph_hash.txt": digest,
        "input_tensor_constraints.py": digest,
    }
    for name, text in files.items():
        (folder / name).write_bytes(text.encode(errors="surrogatepass"))
    with nothing_runs():
        try:
            sample = read_sample(folder)
        except GraphError as error:
            assert str(error).startswith(str(folder))
            return
    assert isinstance(sample.info, dict) and isinstance(sample.sources, dict)
    write_sample(folder / "again", sample)
    assert repr(read_sample(folder / "again")) == repr(sample)
