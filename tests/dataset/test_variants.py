"""All variants of a net's graphs are made, checked and named, or their failure has a cause."""

import pytest
import torch

from passnet.dataset import variants
from passnet.dataset.variants import Failure, Variant, dtype_variants, net_variants
from passnet.extract.capture import capture
from passnet.extract.recapture import recapture
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.mine.cost import cost, finite_outputs
from tests.extract import sized
from tests.graph.programs import graph_of, program_of


def of_net(name, **options):
    entry = f"{sized.__file__}:{name}"
    graphs = dict(enumerate(recapture(entry, {}).graphs))
    return graphs, {item.name: item for item in net_variants(entry, graphs, **options)}


@pytest.mark.slow
def test_a_net_has_up_to_ten_shapes_in_three_dtypes():
    graphs, found = of_net("words")
    assert len(found) == 30 and all(isinstance(item, Variant) for item in found.values())
    assert fingerprints(found[""].graph).full == fingerprints(graphs[0]).full
    sequences = {op_sequence(item.graph.program) for item in found.values()}
    assert sequences == {op_sequence(graphs[0].program)}
    wide = found["batch=256,sequence=16,float16"].graph
    assert {(item.shape, item.dtype) for item in wide.tensors} == {
        ((256, 16), "int64"),
        ((50, 8), "float16"),
    }
    assert all(item.was_run for item in found.values())


@pytest.mark.slow
def test_variants_of_every_shape_have_the_literals_of_their_dtype():
    _, found = of_net("rms", dtypes=("bfloat16",))
    assert found["batch=16,bfloat16"].follows
    [expected] = recapture(f"{sized.__file__}:rms", {"batch": 16}, "bfloat16").graphs
    mine = fingerprints(found["batch=16,bfloat16"].graph).full
    assert mine == fingerprints(expected).full


def test_sizes_that_a_net_refuses_or_answers_with_other_ops_are_failures():
    _, found = of_net("fixed", dtypes=())
    made = {name for name, item in found.items() if isinstance(item, Variant)}
    assert made == {"", "batch=1", "batch=4"}
    assert found["batch=16"].cause == "refused_by_net" and "too many" in found["batch=16"].reason
    _, found = of_net("branching", dtypes=())
    causes = {name: item.cause for name, item in found.items() if isinstance(item, Failure)}
    assert set(causes.values()) == {"other_graph"}
    assert set(causes) == {f"batch={size}" for size in (32, 64, 128, 256, 512)}


def test_the_graphs_of_a_net_that_cannot_be_captured_again_have_variants_in_dtypes():
    graph = graph_of(program_of("y = a + b", returns="(y,)"))
    found = list(net_variants(f"{sized.__file__}:broken", {0: graph}, dtypes=("float16",)))
    assert [type(item) for item in found] == [Variant, Variant, Failure]
    assert found[2].name == variants.OTHER_SIZES and found[2].cause == "refused_by_net"


def test_an_output_that_leaves_the_range_of_float16_is_a_failure():
    lines = ["x = a * 1000.0", "y = x * 1000.0"]
    graph = graph_of(program_of(*lines, params="a", returns="(y,)"))
    found = {item.name: item for item in dtype_variants(graph)}
    assert found["float16"].cause == "not_finite"
    assert isinstance(found["bfloat16"], Variant) and found["bfloat16"].was_run


def test_where_the_original_is_not_finite_the_variant_need_not_be():
    graph = graph_of(program_of("y = a / 0.0", params="a", returns="(y,)"))
    assert all(isinstance(item, Variant) for item in dtype_variants(graph))


def test_a_graph_without_floats_has_no_variants():
    graph = graph_of(program_of("y = a + b", returns="(y,)"), dtype="int64")
    found = {item.name: item for item in dtype_variants(graph)}
    assert isinstance(found[""], Variant)
    assert {name: item.cause for name, item in found.items() if name} == {
        "float16": "no_float",
        "bfloat16": "no_float",
    }


def test_a_graph_that_is_too_large_is_a_failure(monkeypatch):
    graph = graph_of(program_of("y = a + b", returns="(y,)"), (100,))
    monkeypatch.setattr(variants, "MAX_BYTES", 1000)
    found = {item.name: item for item in dtype_variants(graph)}
    assert found[""].cause == "too_large" and "1200 bytes" in found[""].reason
    assert isinstance(found["float16"], Variant)


def test_what_the_cpu_refuses_is_a_failure():
    program = program_of("y = torch.mm(a, b)", returns="(y,)")
    found = list(dtype_variants(graph_of(program, (2, 3))))
    assert {item.cause for item in found} == {"refused_by_op"}
    assert all("torch.mm" in item.reason for item in found)


def test_a_graph_costs_its_products_and_its_largest_value():
    [graph] = capture(torch.nn.Linear(4, 8), torch.ones(16, 4))
    found = cost(graph)
    assert found.num_flops == 2 * 16 * 4 * 8
    assert found.num_bytes == 4 * (16 * 4 + 4 * 8 + 8) + 4 * 16 * 8


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_graph_runs_in_every_dtype(dtype):
    program = program_of("x = a - 9.0", "y = torch.log(x)", params="a", returns="(y,)")
    [finite] = finite_outputs(graph_of(program, dtype=dtype))
    assert finite.shape == (2, 3) and not finite.any()
