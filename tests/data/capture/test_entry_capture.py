"""One entry in this process: what is recorded, what is checked, and the causes of failure."""

from dataclasses import replace

import msgspec
import pytest
import torch

from passnet.data.capture import constraints
from passnet.data.capture.capture import module_graph
from passnet.data.capture.catalog.file import as_net
from passnet.data.capture.entry_capture import capture_entry
from passnet.data.capture.record import CaptureSettings, Constraints
from passnet.data.capture.store import GraphSource
from passnet.data.capture.trace import Trace
from passnet.graph.fx.build import build
from passnet.graph.spec import Op
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from tests.data.capture import own

HERE = own.__file__


def capture(name, **changes):
    return capture_entry(f"{HERE}:{name}", replace(CaptureSettings(), **changes))


def test_a_net_is_captured_with_fake_weights_and_checked():
    result = capture("small")
    record = result.record
    assert (record.status, record.mode, record.num_parameters) == ("captured", "fake", 40 + 16 + 72)
    [note], [row] = record.graphs, result.rows
    assert note.full == row.full and note.num_ops == len(row.op_sequence)
    assert record.constraints == Constraints(True, True, True, True, (), 0.0)
    tensors = {spec["name"]: spec for spec in msgspec.json.decode(row.tensors)}
    [weight] = [spec for name, spec in tensors.items() if "second" in name and "weight" in name]
    assert abs(weight["mean"] - 0.5) < 0.03 and abs(weight["std"] - 0.25) < 0.02


def test_both_kinds_of_weights_give_the_same_rows_but_for_statistics():
    for name in ("small", "broken", "by_keyword"):
        fake, real = capture(name, mode="fake"), capture(name, mode="real")
        assert [row.full for row in fake.rows] == [row.full for row in real.rows]
        assert [row.program for row in fake.rows] == [row.program for row in real.rows]


def test_a_net_with_a_graph_break_has_its_flow_recorded():
    record = capture("broken").record
    assert len(record.graphs) == 2
    assert record.flow.calls == (0, 1)
    [(call, _, source, output)] = record.flow.edges
    assert (call, source, output) == (1, 0, 0)
    assert record.constraints is not None and record.constraints.runnable


@pytest.mark.parametrize("mode", ["fake", "real"])
def test_a_net_with_state_is_checked_on_one_state(mode):
    record = capture("counting", mode=mode).record
    assert record.constraints is not None and record.constraints.runnable, record.constraints


def test_a_net_that_looks_at_weights_falls_back_to_real_ones():
    record = capture("choosing").record
    assert (record.status, record.mode) == ("captured", "real")
    assert record.fake_error
    failed = capture("choosing", mode="fake").record
    assert (failed.status, failed.cause) == ("failed", "data_dependent")


def test_axes_of_inputs_are_recorded():
    [row] = capture("named").rows
    assert list(msgspec.json.decode(row.axes).values()) == [["batch", "3", "height", "width"]]
    assert (row.domain, row.task) == ("cv", "edges")


def test_training_gives_another_graph_where_it_differs():
    def dropping():
        return as_net((torch.nn.Sequential(torch.nn.Dropout(0.5)), torch.ones(2, 4)), "here")

    assert dropping().module.training is False
    evaluated, trained = capture("small"), capture("small", train=True)
    assert trained.rows[0].sources[0].train and not evaluated.rows[0].sources[0].train


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("raises_when_built", "build_error"),
        ("raises_when_called", "forward_error"),
        ("lacks_a_package", "missing_package"),
        ("returns_nonsense", "no_entry"),
        ("no_such_function", "no_entry"),
    ],
)
def test_a_failure_is_a_record_with_its_cause(name, cause):
    result = capture(name)
    assert (result.record.status, result.record.cause) == ("failed", cause)
    assert result.record.error and not result.rows


def test_a_net_that_is_too_large_to_run_is_not_checked():
    checked = capture("small", check_parameters=10).record.constraints
    assert checked is not None and checked.runnable is None
    assert checked.unchecked == "128 parameters are too many to run"
    unchecked_run = capture("small", check=False).record.constraints
    assert unchecked_run is not None and unchecked_run.unchecked == "not asked for"


def test_a_check_stops_after_its_time():
    checked = capture("small", check_seconds=1e-6).record.constraints
    assert checked is not None and "1e-06 s" in str(checked.unchecked)


def test_a_graph_that_computes_something_else_is_found_out():
    net = as_net((own.Small(), torch.ones(2, 4)), "here")
    graphs = []
    trace = Trace(
        net.module, lambda segment: graphs.append(module_graph(segment.module, segment.arguments))
    )
    trace.run([argument.value for argument in net.args], {})

    def altered(captured):
        body = tuple(
            replace(op, target="Tensor.sigmoid")
            if isinstance(op, Op) and op.target == "Tensor.relu"
            else op
            for op in captured.graph.program.body
        )
        return replace(
            captured,
            graph=replace(captured.graph, program=replace(captured.graph.program, body=body)),
        )

    static = constraints.static_constraints(graphs[0].graph)
    settings = CaptureSettings()

    def compare(captured):
        again = lambda: as_net((own.Small(), torch.ones(2, 4)), "here")  # noqa: E731
        replay = constraints.Replay(net, trace, captured, None, again)
        return constraints.check_outputs(replay, settings, static)

    right = compare(graphs)
    assert right.runnable and right.error is None
    wrong = compare([altered(graphs[0])])
    assert wrong.runnable is False and "standard deviations" in str(wrong.error)


def test_a_net_that_keeps_what_it_was_called_with_is_built_anew_for_its_check():
    record = capture("caching").record
    assert record.mode == "fake"
    assert record.constraints is not None and record.constraints.runnable


@pytest.mark.parametrize("name", ["attending", "lstm", "gru", "encoder"])
def test_recurrent_and_attending_nets_are_captured_with_fake_weights_and_compute_the_same(name):
    record = capture(name).record
    assert (record.status, record.mode) == ("captured", "fake"), record.error
    assert record.constraints is not None
    assert (record.constraints.runnable, record.constraints.error) == (True, None)


def test_what_dynamo_does_not_trace_is_named():
    for _ in range(2):  # the second time, Dynamo has said so before
        record = capture("packed", mode="real").record
        assert record.error is not None
        assert "found no tensor op to trace" in record.error
        assert "`pack_padded_sequence`" in record.error


def test_a_graph_without_arguments_is_a_graph():
    result = capture("constant")
    assert result.record.status == "captured", result.record.error
    assert "[]" in [row.tensors for row in result.rows]


def test_a_graph_that_cannot_be_read_again_is_no_row_and_the_others_are():
    result = capture("half_foreign")
    record = result.record
    assert (record.status, len(result.rows)) == ("captured", 1)
    assert [note.is_kept for note in record.graphs] == [False, True]
    checked = record.constraints
    assert checked is not None and not checked.serialisable and checked.runnable is None
    assert checked.unchecked == "a graph cannot be read again"
    alone = capture("foreign")
    assert (alone.record.status, alone.record.cause) == ("failed", "unsupported_graph")
    assert not alone.rows


def test_what_a_graph_cannot_hold_is_named_and_real_weights_are_not_tried():
    record = capture("eighth").record
    assert (record.status, record.cause) == ("failed", "unsupported_graph")
    assert "float8_e4m3fn" in str(record.error) and record.fake_error is None


def test_custom_operators_are_named():
    graphs = []
    trace = Trace(
        own.Small(), lambda segment: graphs.append(module_graph(segment.module, segment.arguments))
    )
    trace.run([torch.ones(2, 4)], {})
    program = graphs[0].graph.program
    body = (*program.body, Op("z", "torch.ops.mylib.myop", ()), Op("w", "torch.ops.aten.relu", ()))
    graph = replace(graphs[0].graph, program=replace(program, body=body))
    assert constraints.custom_ops(graph) == ("torch.ops.mylib.myop",)


def test_gradients_are_graphs_of_their_own():
    result = capture("broken", train=True, backward=True)
    record = result.record
    assert (record.status, len(record.graphs), len(record.backward)) == ("captured", 2, 2)
    parts = [(row.sources[0].number, row.sources[0].part) for row in result.rows]
    assert sorted(parts) == [(0, "backward"), (0, "forward"), (1, "backward"), (1, "forward")]
    assert record.constraints is not None and record.constraints.analysable, record.constraints
    [last] = [
        row
        for row in result.rows
        if row.sources[0] == GraphSource(record.entry, 1, True, "backward")
    ]
    assert "torch.ops.aten.native_layer_norm_backward.default" in last.op_sequence


def test_a_backward_graph_computes_the_gradients():
    net, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    backward = []
    Trace(net, lambda segment: None, lambda *call: backward.append(call)).run([x], {})
    [(number, module, values)] = backward
    assert number == 0
    graph = module_graph(module, values).graph
    gradient = torch.randn(2, 3)
    inputs = [x if spec.shape == (2, 4) else gradient for spec in graph.tensors]
    with torch.no_grad():
        gradients = build(parse_program(render_program(graph.program))).forward(*inputs)
    by_shape = {tuple(value.shape): value for value in gradients if value is not None}
    torch.testing.assert_close(by_shape[(3, 4)], gradient.T @ x)
    torch.testing.assert_close(by_shape[(3,)], gradient.sum(0))
