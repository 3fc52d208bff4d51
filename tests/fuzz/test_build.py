"""Any program that parses, built and run under fake tensors: a GraphError or shapes, no memory."""

from __future__ import annotations

import logging
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import strategies as st

from passnet.errors import GraphError
from passnet.graph.fx.build import build
from passnet.graph.fx.targets import ALLOWED
from passnet.graph.spec import Arg, Graph, Op, Param, Program, Ref, TensorSpec
from passnet.graph.text.check import check_graph
from passnet.graph.text.files import GraphSample, write_sample
from passnet.graph.text.meta import DTYPE_BYTES
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.values.fake import infer_shapes
from passnet.graph.values.fake_limits import MAX_BITS, MAX_CALLS, MAX_PARTS
from tests.fuzz.hostile import fuzz
from tests.graph.programs import arguments, program_of

MEMORY_MIB = 256
"""What a fake run may add to the memory of the process, once torch is loaded."""

TARGETS = sorted(ALLOWED) + ["torch.ops.aten.index.Tensor", "torch.ops.aten.repeat.default"]
NOT_ALLOWED = [
    "torch.load",
    "torch.save",
    "torch.hub.load",
    "torch.ops.load_library",
    "torch.__builtins__.eval",
    "torch.os.system",
    "torch.ops.aten.__class__",
    "torch.ops.aten.index.__call__",
    "Tensor.__class__",
    "Tensor.data_ptr",
    "Tensor.apply_",
    "Tensor.numpy",
    "Tensor.__reduce__",
    "operator.attrgetter",
    "operator.methodcaller",
    "operator.call",
    "torch.from_file",
    "torch.utils.cpp_extension.load",
]
KEYWORDS = ["dim", "size", "dims", "dtype", "n", "bins", "steps", "output_size", "other", "value"]
SHAPES = [(), (1,), (3,), (2, 3), (0,), (4, 4), (2, 3, 4), (1, 2, 3, 4), (2**39,), (2**20, 2**18)]
LARGE = st.sampled_from([2**31 - 1, 2**31, 2**40, 2**50, 2**63 - 1, -(2**63), 10**9, 2**64 - 1])
NAMES = ("a", "b", "c", "n", "s")
ARGS: st.SearchStrategy[Arg] = arguments(NAMES) | LARGE | st.sampled_from(NAMES).map(Ref)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Torch reports every op that it refuses, with a traceback."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of one or two ops of any target on sizes, numbers and tensors of any shape."""
    specs = tuple(
        TensorSpec(
            name,
            draw(st.sampled_from(SHAPES)),
            draw(st.sampled_from(["float32", "float32", *sorted(DTYPE_BYTES)])),
            mean=draw(st.sampled_from([None, 0, 1, 2.5])),
        )
        for name in "ab"
    )
    number = TensorSpec("c", (), "int64", mean=draw(st.sampled_from([0, 1, 3, 10**9, 2**40])))
    kind = draw(st.sampled_from([None, "torch.SymInt"]))
    size = "Tensor.item" if specs[1].num_elements == 1 else "Tensor.numel"
    ops = [Op("s", "Tensor.size", (Ref("a"),)), Op("n", size, (Ref("b"),))]
    for _ in range(draw(st.integers(1, 2))):
        listed = draw(st.integers(0, 19)) > 0
        target = draw(st.sampled_from(TARGETS if listed else NOT_ALLOWED))
        first: Arg = Ref(draw(st.sampled_from(["a", "a", *NAMES])))
        few = draw(st.lists(ARGS | st.integers(-1, 3), max_size=3))
        keys = draw(st.lists(st.sampled_from(KEYWORDS), unique=True, max_size=1))
        kwargs = tuple((key, draw(ARGS)) for key in keys) if draw(st.booleans()) else ()
        ops.append(Op("a", target, (first, *few), kwargs))
    params = (Param("a"), Param("b"), Param("c", kind))
    return Graph(Program(params, tuple(ops), (Ref("a"),)), (*specs, number))


def peak_mib() -> int:
    """Most memory that the process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def run(graph: Graph) -> str:
    """The error of a fake run, empty if it worked; the memory is checked on the way."""
    before = peak_mib()
    try:
        program = parse_program(render_program(graph.program))
        infer_shapes(Graph(program, graph.tensors))
    except GraphError as error:
        return str(error)
    finally:
        assert peak_mib() - before < MEMORY_MIB
    return ""


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Torch's lazy parts are loaded before memory is compared."""
    specs = tuple(TensorSpec(name, (2, 2), "float32") for name in "ab")
    lines = ("x = torch.einsum('ij,jk->ik', a, b)", "y = a.nonzero()", "z = a.unknown()")
    infer_shapes(Graph(program_of(*lines[:2]), specs))
    with pytest.raises(GraphError):
        infer_shapes(Graph(program_of(*lines), specs))


@fuzz(250, graphs())
def test_any_op_on_anything_has_shapes_or_is_refused(graph: Graph):
    error = run(graph)
    assert error == "" or error.startswith(("model.py:", "argument ", "Tensor."))


@pytest.mark.parametrize("target", NOT_ALLOWED)
def test_a_target_that_is_not_allowed_is_refused_whatever_it_is_given(target: str):
    call = f"a.{target.removeprefix('Tensor.')}()" if "Tensor." in target else f"{target}(a)"
    with pytest.raises(GraphError, match="not on the list of allowed targets"):
        build(program_of(f"x = {call}"))


def doubled(first: str, line: str, times: int = 64) -> tuple[str, ...]:
    """A line many times over."""
    return (first, *(line for _ in range(times)))


BOMBS: dict[str, tuple[tuple[str, ...], str]] = {
    "a size repeated": (("s = a.size()", "x = s * 1000000000"), f"more than {MAX_PARTS}"),
    "a size repeated by a tensor": (("x = (1, 2) * a",), f"more than {MAX_PARTS}"),
    "a size doubled": (doubled("s = a.size()", "s = s + s"), f"more than {MAX_PARTS}"),
    "lists within lists": (doubled("s = a.chunk(2)", "s = (s, s) + s"), f"more than {MAX_PARTS}"),
    "a power": (("n = a.numel()", "x = n ** 1000000000"), f"more than {MAX_BITS} bits"),
    "a shift": (("n = a.numel()", "x = n << 10000000000"), f"more than {MAX_BITS} bits"),
    "a number squared": (doubled("n = a.numel()", "n = n * n"), f"more than {MAX_BITS} bits"),
    "a power of an unknown number": (
        ("m = torch.sum(b)", "n = m.item()", "x = n ** 100000000"),
        f"more than {MAX_BITS} bits",
    ),
    "text that formats": (("n = a.numel()", "x = '%9999999999d' % n"), "text is not formatted"),
    "text repeated": (("n = a.numel()", "x = n * 'abcdefghij'", "x = 1000000 * x"), "more than"),
    "a method of a size": (("s = a.size()", "x = s.__mul__(1000000000)"), "that is no tensor"),
    "an unbind of millions": (("x = torch.zeros(100000000)", "y = x.unbind(0)"), "parts"),
    "a split of millions": (("x = torch.zeros(100000000)", "y = x.split(1)"), "parts"),
    "chunks of nothing": (("x = torch.zeros(0)", "y = x.chunk(2147483648)"), "parts"),
    "sections": (("x = a.tensor_split(sections=1000000000)",), "parts"),
    "combinations": (("x = torch.combinations(a, 2147483648)",), "parts"),
    "differences of differences": (
        ("x = torch.zeros(2000000)", "y = torch.diff(x, 1000000)"),
        f"more than {MAX_CALLS} ops of torch",
    ),
    "a formula that grows": (
        ("m = torch.sum(b)", "n = m.item()", *(["n = n + 1", "n = n // 3"] * 90)),
        "a formula of more than",
    ),
}


@pytest.mark.parametrize(
    "claim", [pytest.param(key, marks=pytest.mark.slow if "diff" in key else ()) for key in BOMBS]
)
def test_what_is_not_fake_stays_small(claim: str):
    lines, message = BOMBS[claim]
    specs = (TensorSpec("a", (3,), "int64"), TensorSpec("b", (3,), "int64"))
    before = peak_mib()
    with pytest.raises(GraphError, match=message):
        infer_shapes(Graph(program_of(*lines, returns="(1,)"), specs))
    assert peak_mib() - before < MEMORY_MIB


LARGE_RESULTS = {
    "x = torch.zeros(1125899906842624)": 2**50,
    "x = a.repeat(4294967296)": 2**32,
    "x = a.new_ones((4294967296,))": 2**32,
    "x = b.repeat(4294967296)": 2**32,
    "c = torch.tensor(1.0); x = c.repeat(4294967296)": 2**32,
    "c = torch.tensor([1.0]); x = torch.nn.functional.pad(c, (0, 4294967295))": 2**32,
    "x = torch.linspace(a, a, 4294967296)": 2**32,
    "x = torch.histc(b, 4294967296)": 2**32,
}
"""Lines whose last value has that many elements; `a` is a number that was recorded."""


@pytest.mark.parametrize("line", LARGE_RESULTS)
def test_a_large_result_of_a_recorded_number_takes_no_memory(line: str):
    specs = (TensorSpec("a", (), "float32", mean=1.0), TensorSpec("b", (1,), "float32", mean=1.0))
    before = peak_mib()
    shapes = infer_shapes(Graph(program_of(line, returns="(x,)"), specs))
    assert shapes[-1][0].shape == (LARGE_RESULTS[line],)
    assert peak_mib() - before < MEMORY_MIB


def test_a_size_may_still_be_read_from_a_recorded_number():
    lines = ("n = a.item()", "m = a + 1", "m.mul_(2)", "k = m.item()", "x = torch.zeros(n, k)")
    specs = (TensorSpec("a", (), "int64", mean=5), TensorSpec("b", (), "int64"))
    shapes = infer_shapes(Graph(program_of(*lines, returns="(x,)"), specs))
    assert shapes[-1][0].shape == (5, 12)


def test_a_number_that_was_overwritten_is_not_known_any_more():
    lines = ("a.random_(0, 7)", "n = a.item()", "x = torch.zeros(n)")
    specs = (TensorSpec("a", (), "int64", mean=5), TensorSpec("b", (), "int64"))
    shapes = infer_shapes(Graph(program_of(*lines, returns="(x,)"), specs))
    assert shapes[-1][0].shape == (-1,)


def test_a_check_reports_what_was_refused(tmp_path: Path):
    specs = tuple(TensorSpec(name, (3,), "float32") for name in "ab")
    lines, _ = BOMBS["a size repeated"]
    write_sample(tmp_path / "bomb", GraphSample(Graph(program_of(*lines), specs)))
    check = check_graph(tmp_path / "bomb", build=True)
    assert check.parsed and check.built is False
    assert check.error and f"more than {MAX_PARTS}" in check.error


def test_torch_counts_devices_in_eight_bits():
    assert torch.device("cuda", 2**32).index == 0  # which is why `build` looks at the number
    with pytest.raises(GraphError, match="device 'cuda', index 4294967296: above 127"):
        build(program_of(f"x = a.to(device('cuda', {2**32}))"))
