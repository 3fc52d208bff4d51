"""All variants of a net's graphs are made, checked and named, or their failure has a cause."""

import pytest
import torch

from passnet.data.capture.capture import capture
from passnet.data.capture.recapture import recapture
from passnet.data.dataset import variants
from passnet.data.dataset.variants import Failure, Variant, dtype_variants, net_variants
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.values.cost import cost, finite_outputs, missing_kernels
from tests.data.capture import sized
from tests.graph.programs import graph_of, program_of


def of_net(name, **options):
    entry = f"{sized.__file__}:{name}"
    graphs = dict(enumerate(recapture(entry, {}).graphs))
    return graphs, {variant.name: variant for variant in net_variants(entry, graphs, **options)}


@pytest.mark.slow
def test_a_net_has_up_to_ten_shapes_in_three_dtypes():
    graphs, by_name = of_net("words")
    assert len(by_name) == 30 and all(isinstance(variant, Variant) for variant in by_name.values())
    assert fingerprints(by_name[""].graph).full == fingerprints(graphs[0]).full
    sequences = {op_sequence(variant.graph.program) for variant in by_name.values()}
    assert sequences == {op_sequence(graphs[0].program)}
    wide = by_name["batch=256,sequence=16,float16"].graph
    assert {(spec.shape, spec.dtype) for spec in wide.tensors} == {
        ((256, 16), "int64"),
        ((50, 8), "float16"),
    }
    assert all(variant.was_run for variant in by_name.values())


@pytest.mark.slow
def test_variants_of_every_shape_have_the_literals_of_their_dtype():
    _, by_name = of_net("rms", dtypes=("bfloat16",))
    assert by_name["batch=16,bfloat16"].follows
    [expected] = recapture(f"{sized.__file__}:rms", {"batch": 16}, "bfloat16").graphs
    actual = fingerprints(by_name["batch=16,bfloat16"].graph).full
    assert actual == fingerprints(expected).full


def test_sizes_that_a_net_refuses_or_answers_with_other_ops_are_failures():
    _, by_name = of_net("fixed", dtypes=())
    names = {name for name, variant in by_name.items() if isinstance(variant, Variant)}
    assert names == {"", "batch=1", "batch=4"}
    assert (
        by_name["batch=16"].cause == "refused_by_net" and "too many" in by_name["batch=16"].reason
    )
    _, by_name = of_net("branching", dtypes=())
    causes = {
        name: variant.cause for name, variant in by_name.items() if isinstance(variant, Failure)
    }
    assert set(causes.values()) == {"other_graph"}
    assert set(causes) == {f"batch={size}" for size in (32, 64, 128, 256, 512)}


def test_the_graphs_of_a_net_that_cannot_be_captured_again_have_variants_in_dtypes():
    graph = graph_of(program_of("y = a + b", returns="(y,)"))
    results = list(net_variants(f"{sized.__file__}:broken", {0: graph}, dtypes=("float16",)))
    assert [type(variant) for variant in results] == [Variant, Variant, Failure]
    assert results[2].name == variants.OTHER_SIZES and results[2].cause == "refused_by_net"


def test_an_output_that_leaves_the_range_of_float16_is_a_failure():
    lines = ["x = a * 1000.0", "y = x * 1000.0"]
    graph = graph_of(program_of(*lines, params="a", returns="(y,)"))
    by_name = {variant.name: variant for variant in dtype_variants(graph)}
    assert by_name["float16"].cause == "not_finite"
    assert isinstance(by_name["bfloat16"], Variant) and by_name["bfloat16"].was_run


def test_where_the_original_is_not_finite_the_variant_need_not_be():
    graph = graph_of(program_of("y = a / 0.0", params="a", returns="(y,)"))
    assert all(isinstance(variant, Variant) for variant in dtype_variants(graph))


def test_a_graph_without_floats_has_no_variants():
    graph = graph_of(program_of("y = a + b", returns="(y,)"), dtype="int64")
    by_name = {variant.name: variant for variant in dtype_variants(graph)}
    assert isinstance(by_name[""], Variant)
    assert {name: variant.cause for name, variant in by_name.items() if name} == {
        "float16": "no_float",
        "bfloat16": "no_float",
    }


def test_a_graph_that_is_too_large_is_a_failure():
    graph = graph_of(program_of("y = a + b", returns="(y,)"), (2**31,))
    by_name = {variant.name: variant for variant in dtype_variants(graph)}
    assert by_name[""].cause == "too_large" and f"{3 * 4 * 2**31} bytes" in by_name[""].reason
    assert isinstance(by_name["float16"], Variant)


def test_what_the_cpu_refuses_is_a_failure():
    program = program_of("y = torch.mm(a, b)", returns="(y,)")
    failures = list(dtype_variants(graph_of(program, (2, 3))))
    assert {failure.cause for failure in failures} == {"refused_by_op"}
    assert all("torch.mm" in failure.reason for failure in failures)


POOLED = program_of(
    "x = a + 1.0", "y = torch.nn.functional.avg_pool3d(x, 2)", params="a", returns="(y,)"
)


@pytest.mark.parametrize("size", [2, 540])  # the latter is too large to be run as a whole
def test_what_the_cpu_does_not_implement_in_a_dtype_is_a_failure(size):
    graph = graph_of(POOLED, (1, 1, 2, 540, size * 540))
    by_name = {variant.name: variant for variant in dtype_variants(graph, dtypes=("float16",))}
    assert isinstance(by_name[""], Variant)
    assert by_name["float16"].cause == "refused_by_op"
    assert "not implemented for 'Half'" in by_name["float16"].reason


def test_the_ops_that_the_cpu_lacks_are_named_by_number():
    assert not missing_kernels(graph_of(POOLED, (1, 2, 2, 2)))
    lacking = missing_kernels(graph_of(POOLED, (1, 2, 2, 2), dtype="float16"))
    assert list(lacking) == [1] and "avg_pool3d" in lacking[1]


def test_an_op_that_refuses_zeros_or_is_too_large_counts_as_implemented():
    inverted = program_of("y = a.inverse()", params="a", returns="(y,)")
    assert not missing_kernels(graph_of(inverted, (2, 2)))
    assert not missing_kernels(graph_of(POOLED, (1, 2048, 1024, 1024), dtype="float16"))


def test_a_graph_costs_its_products_and_its_largest_value():
    [graph] = capture(torch.nn.Linear(4, 8), torch.ones(16, 4))
    size = cost(graph)
    assert size.num_flops == 2 * 16 * 4 * 8
    assert size.num_bytes == 4 * (16 * 4 + 4 * 8 + 8) + 4 * 16 * 8


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_graph_runs_in_every_dtype(dtype):
    program = program_of("x = a - 9.0", "y = torch.log(x)", params="a", returns="(y,)")
    [finite] = finite_outputs(graph_of(program, dtype=dtype))
    assert finite.shape == (2, 3) and not finite.any()
