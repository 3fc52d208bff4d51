"""A declared domain holds wherever an argument is drawn, and stays with its graph."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from passnet.core.records.dtypes import from_storage
from passnet.core.records.serialise import decode, encode
from passnet.errors import GraphError, InputError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph, TensorSpec, ValueDomain
from passnet.graph.text.files import GraphSample, graph_from_row, read_sample, write_sample
from passnet.graph.text.meta import parse_meta
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.values.inputs import InputKind, InputValue, in_domain, make_inputs
from passnet.graph.values.structured import make_structured
from passnet.judge.timing.fresh_inputs import FreshInputs
from passnet_audit.suites.domains import declare, proposals

KINDS: tuple[InputKind, ...] = get_args(InputKind)
DOMAINS: tuple[ValueDomain, ...] = get_args(ValueDomain)
BODY = (
    "y = torch.softmax(x, -1)",
    "z = y.cumsum(-1)",
    "m = z.amax(-1, keepdim=True)",
    "v = z / m",
)


def graph_of(*lines: str, dtype: str = "float32", names: str = "x") -> Graph:
    body = "\n".join(f"        {line}" for line in lines)
    head = "import torch\n\n\nclass GraphModule(torch.nn.Module):\n"
    program = parse_program(f"{head}    def forward(self, {names}):\n{body}\n        return (v,)\n")
    specs = [TensorSpec(name, (3, 32, 48), dtype, mean=2.0, std=30.0) for name in names.split(", ")]
    return Graph(program, tuple(specs))


def lies_in(domain: ValueDomain, value: InputValue, dtype: str) -> bool:
    assert not isinstance(value, int)
    values = from_storage(value, dtype).astype(np.float64)
    match domain:
        case "positive":
            return bool((values > 0).all())
        case "unit":
            return bool((np.abs(values) < 1).all())
        case "unit_vectors":
            norms = [np.linalg.norm(values, axis=dim) for dim in (-1, -2)]
            return all(bool((each <= 1).all()) for each in norms)


def all_values(graph: Graph) -> list[InputValue]:
    kinds = [make_inputs(graph, kind, 5)[0] for kind in KINDS]
    return [*kinds, *(values[0] for values in make_structured(graph, 5, 4))]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_all_inputs_lie_in_their_domain_and_none_without_it(
    domain: ValueDomain, dtype: str
) -> None:
    graph = graph_of(*BODY, dtype=dtype)
    inside = [lies_in(domain, each, dtype) for each in all_values(declare(graph, {"x": domain}))]
    assert len(inside) == len(KINDS) + 4 and all(inside)
    assert not any(lies_in(domain, each, dtype) for each in all_values(graph))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("domain", ["positive", "unit"])
def test_values_of_timed_calls_lie_in_the_domain(domain: ValueDomain, dtype: str) -> None:
    graph = declare(graph_of(*BODY, dtype=dtype), {"x": domain})
    values = [[each] for each in all_values(graph)]
    calls = FreshInputs(graph.tensors, values, np.random.default_rng(0))
    for number, [drawn] in enumerate(values):
        assert not isinstance(drawn, int)
        target = np.empty(drawn.size, drawn.dtype)
        calls.write(calls.draw(number), 0, target)
        assert lies_in(domain, target, dtype)
        assert target.tobytes() != drawn.tobytes()


@pytest.mark.parametrize("domain", DOMAINS)
def test_values_inside_a_domain_stay_as_they_are(domain: ValueDomain) -> None:
    spec = replace(TensorSpec("x", (4, 8), "float32"), domain=domain)
    values = np.random.default_rng(0).uniform(0.01, 0.2, (4, 8)).astype(np.float32)
    assert in_domain(values, spec).tobytes() == values.tobytes()


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_domain_survives_a_graph_folder_and_a_row(domain: ValueDomain, tmp_path: Path) -> None:
    graph = declare(graph_of(*BODY), {"x": domain})
    write_sample(tmp_path / "graph", GraphSample(graph))
    assert f"domain = '{domain}'" in (tmp_path / "graph" / "weight_meta.py").read_text()
    assert read_sample(tmp_path / "graph").graph == graph
    row = (render_program(graph.program), encode(graph.tensors).decode())
    assert graph_from_row(*row, "row") == graph


def test_rows_of_before_are_read_and_their_graphs_keep_their_hash() -> None:
    graph = graph_of(*BODY)
    before = encode(graph.tensors).decode().replace(',"domain":null', "")
    assert "domain" not in before
    assert graph_from_row(render_program(graph.program), before, "row") == graph
    own = fingerprints(graph)
    assert own.full == "c902d02e3f8e125194fdc227f57766afc12e0b36ced432453eae444d58cebad1"
    for domain in DOMAINS:
        declared = fingerprints(declare(graph, {"x": domain}))
        assert (declared.literals, declared.full != own.full) == (own.literals, True)
    assert len({fingerprints(declare(graph, {"x": each})).full for each in DOMAINS}) == 3


def test_an_unknown_domain_is_refused() -> None:
    known = "none of positive, unit, unit_vectors of a float"
    text = "class A:\n    name = 'x'\n    shape = [2]\n    dtype = 'torch.{}'\n    domain = '{}'\n"
    for dtype, domain in (("float32", "large"), ("int64", "unit")):
        with pytest.raises(GraphError, match=f"m:1: x: domain is {domain}, {known}"):
            parse_meta(text.format(dtype, domain), "m")
    tensors = encode(declare(graph_of(*BODY), {"x": "unit"}).tensors).decode()
    with pytest.raises(InputError, match="large"):
        decode(tensors.replace('"unit"', '"large"'), tuple[TensorSpec, ...], "row")


PROPOSED: dict[str, tuple[tuple[str, ...], list[dict[str, ValueDomain]]]] = {
    "the root of a mean": (
        ("a = x.mean(-1, keepdim=True)", "b = torch.rsqrt(a)", "v = y * b"),
        [{"x": "positive"}],
    ),
    "the angle of a product": (
        ("a = torch.matmul(x, y)", "v = torch.acos(a)"),
        [
            {"x": "unit"},
            {"y": "unit"},
            {"x": "unit_vectors"},
            {"y": "unit_vectors"},
            {"x": "unit", "y": "unit"},
            {"x": "unit_vectors", "y": "unit_vectors"},
        ],
    ),
    "a division by a sum": (("a = y.sum(-1, keepdim=True)", "v = x / a"), [{"y": "positive"}]),
    "no such op": (("v = x + y",), []),
}


@pytest.mark.parametrize("claim", PROPOSED)
def test_domains_are_proposed_for_what_the_operand_is_made_of(claim: str) -> None:
    lines, expected = PROPOSED[claim]
    assert proposals(graph_of(*lines, names="x, y")) == expected
