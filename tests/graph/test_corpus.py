"""Real graphs: all are read and printed without loss, and run, under fake tensors or for real."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from passnet.errors import GraphError
from passnet.graph.canonical import op_sequence
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, retarget
from passnet.graph.text.check import check_graph
from passnet.graph.text.files import find_graphs, read_sample, write_sample
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.values.fake import infer_shapes
from passnet.graph.values.inputs import InputKind, make_inputs

NUM_PARTS = 6
"""Into how many tests the whole corpus is split, so that processes can share it."""


KNOWN = "transformers_electra-khmer_start119_end124_12_fp16"


def all_graphs(graphnet: Path, passnet_samples: Path) -> list[Path]:
    """The directories of both corpora."""
    return [*find_graphs(graphnet), *find_graphs(passnet_samples)]


def test_the_corpus_is_whole(graphnet: Path, passnet_samples: Path):
    assert len(all_graphs(graphnet, passnet_samples)) == 380


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, NUM_PARTS))]
)
def test_every_graph_parses_and_its_print_parses_to_itself(
    graphnet: Path, passnet_samples: Path, part: int
):
    for path in all_graphs(graphnet, passnet_samples)[part::NUM_PARTS]:
        program = parse_program((path / "model.py").read_text(encoding="utf-8"), str(path))
        assert program.ops and parse_program(render_program(program)) == program, path


def test_graphs_written_are_read_back_equal(graphnet: Path, passnet_samples: Path, tmp_path: Path):
    paths = all_graphs(graphnet, passnet_samples)
    for index, path in enumerate([*paths[::25], *paths[-5:]]):
        sample = read_sample(path)
        write_sample(tmp_path / str(index), sample)
        assert read_sample(tmp_path / str(index)) == sample, path


@pytest.mark.parametrize("part", range(5))
def test_full_graphs_run_under_fake_tensors(graphnet: Path, part: int):
    for path in [*find_graphs(graphnet)][::15][part::5]:
        graph = read_sample(path).graph
        shapes = infer_shapes(graph, str(path))
        assert len(shapes) == len(graph.program.ops), path
        assert any(value.shape for values in shapes for value in values), path


@pytest.mark.slow
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_every_graph_runs_under_fake_tensors(graphnet: Path, passnet_samples: Path, part: int):
    checks = [
        check_graph(path, build=True)
        for path in all_graphs(graphnet, passnet_samples)[part::NUM_PARTS]
    ]
    assert [check.error for check in checks if not (check.parsed and check.built)] == []
    assert all(check.num_ops and check.structure and check.full for check in checks)


def as_tensor(value: np.ndarray | int, dtype: str) -> torch.Tensor | int:
    """The value of an argument for torch."""
    if isinstance(value, int):
        return value
    tensor = torch.from_numpy(value)
    return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def run_eagerly(graph: Graph, kind: InputKind, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """The outputs of a graph on the CPU."""
    graph = retarget(graph, "cpu")
    values = [
        as_tensor(value, spec.dtype)
        for value, spec in zip(make_inputs(graph, kind, seed), graph.tensors, strict=True)
    ]
    with torch.no_grad():
        return build(graph.program)(*values)


@pytest.mark.parametrize("kind", ["recorded", "fresh"])
def test_subgraphs_run_on_the_cpu_and_give_finite_values(passnet_samples: Path, kind: InputKind):
    paths = list(find_graphs(passnet_samples))
    assert len(paths) == 5
    for path in paths:
        graph = read_sample(path).graph
        outputs = run_eagerly(graph, kind)
        assert len(outputs) == len(graph.program.outputs), path
        assert all(output.isfinite().all() for output in outputs), path
        shapes = {shape for values in infer_shapes(graph) for shape in values}
        for output in outputs:
            assert any(
                (tuple(output.shape), str(output.dtype)) == (shape.shape, f"torch.{shape.dtype}")
                for shape in shapes
            ), path
        assert kind == "recorded" or all(output.float().std() > 0 for output in outputs), path


def test_the_op_sequence_of_a_known_subgraph(passnet_samples: Path):
    graph = read_sample(passnet_samples / KNOWN).graph
    assert op_sequence(graph.program) == (
        "torch.nn.functional.linear",
        "torch.nn.functional.dropout",
        "operator.add",
        "torch.nn.functional.layer_norm",
        "torch.nn.functional.linear",
    )


def test_a_graph_that_does_not_fit_its_shapes_names_the_line_and_the_op(passnet_samples: Path):
    graph = read_sample(passnet_samples / KNOWN).graph
    narrow = tuple(
        replace(spec, shape=(512, 511)) if spec.name == "in_3" else spec for spec in graph.tensors
    )
    with pytest.raises(GraphError, match=r"^model\.py:8: torch\.nn\.functional\.linear: "):
        infer_shapes(Graph(graph.program, narrow))
