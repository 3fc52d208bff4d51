"""Wrong programs fail on a sound graph, and every way in which a graph is degenerate is found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.overrides import TorchFunctionMode

from passnet.core.records.serialise import decode, encode
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import InputKind, InputValue, make_inputs
from passnet.judge.suite.suite import Suite, load_suite, make_suite
from passnet.judge.task import TaskGraph
from passnet_audit.suites.admission import (
    INPUT_KINDS,
    Admission,
    AdmissionPlan,
    admit_graph,
    agrees,
)
from passnet_audit.suites.wrong_programs import (
    WrongPrograms,
    make_wrong_programs,
    record_values,
    run_edit,
    run_program,
)
from tests.judge.folders import small_graph

BOTH: tuple[InputKind, ...] = INPUT_KINDS


def spec(name: str, mean: float = 0.0, std: float = 5.0, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(name, (16, 8), dtype, mean=mean, std=std)


def graph_of(lines: Sequence[str], specs: tuple[TensorSpec, ...], returns: str) -> Graph:
    params = ", ".join(spec.name for spec in specs)
    body = "\n".join(f"        {line}" for line in (*lines, f"return ({returns},)"))
    text = (
        "import torch\n\nclass GraphModule(torch.nn.Module):\n"
        f"    def forward(self, {params}):\n{body}\n"
    )
    return Graph(parse_program(text), specs)


def admit(
    *lines: str, specs: tuple[TensorSpec, ...] = (spec("in_0"), spec("in_1")), returns: str
) -> Admission:
    candidate = TaskGraph("task", "graph", graph_of(lines, specs, returns))
    admission = admit_graph(candidate, AdmissionPlan(compiles=False))
    brief = admit_graph(candidate, AdmissionPlan(is_brief=True, compiles=False))
    assert set(brief.degenerate) <= set(admission.degenerate)
    assert (bool(brief.degenerate), brief.partial) == (bool(admission.degenerate), ())
    return admission


def passes(admission: Admission, program: str) -> set[tuple[str, tuple[InputKind, ...]]]:
    """Where a wrong program passes, and on what."""
    reasons = (*admission.degenerate, *admission.partial)
    return {(reason.place, reason.kinds) for reason in reasons if reason.program == program}


def notes(admission: Admission, name: str) -> list[tuple[str, tuple[InputKind, ...]]]:
    return [(note.place, note.kinds) for note in admission.notes if note.name == name]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_no_wrong_program_passes_on_a_sound_graph(dtype: str) -> None:
    specs = (spec("in_0", dtype=dtype), spec("in_1", dtype=dtype))
    admission = admit("a = in_0 + in_1", "b = torch.relu(a)", specs=specs, returns="b")
    assert (admission.degenerate, admission.partial, admission.notes) == ((), (), ())


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_outputs_of_whole_numbers_must_be_equal(dtype: str) -> None:
    last = {"int64": "b = torch.argmax(a, dim=1)", "bool": "b = torch.gt(a, in_0)"}[dtype]
    admission = admit("a = in_0 + in_1", last, returns="b")
    assert (admission.degenerate, admission.partial) == ((), ())


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("zeros", ("a = in_0 * 0.0",)),
        ("ones", ("a = in_0 > -1000.0",)),
        ("ones", ("b = in_0 * 1e-5", "a = b + 1.0")),  # at t = -4 only
        ("constant", ("b = in_0 * 1e-6", "a = torch.softmax(b, -1)")),
        ("overall_mean", ("b = in_0 * 1e-6", "a = torch.softmax(b, -1)")),
        ("random", ("a = in_0 * 1e-9",)),
        ("mean", ("b = in_0.mean(0, keepdim=True)", "a = b.expand(16, 8)")),
        ("previous_outputs", ("b = in_0 * 0.0", "c = torch.arange(8)", "a = b + c")),
    ],
)
def test_a_graph_on_which_made_up_outputs_pass_is_degenerate(
    program: str, lines: tuple[str, ...]
) -> None:
    admission = admit(*lines, specs=(spec("in_0"),), returns="a")
    assert ("output 0", BOTH) in passes(admission, program)
    assert admission.degenerate


def test_one_output_that_is_zeros_makes_a_graph_degenerate() -> None:
    admission = admit("a = in_0 + in_1", "b = a * 0.0", returns="a, b")
    assert passes(admission, "zeros") == {("output 1", BOTH)}


def test_relu_of_negative_recorded_values_is_zeros_and_of_positive_ones_its_input() -> None:
    negative = admit("a = torch.relu(in_0)", specs=(spec("in_0", -5.0, 1.0),), returns="a")
    assert passes(negative, "zeros") == {("output 0", ("recorded",))}
    positive = admit("a = torch.relu(in_0)", specs=(spec("in_0", 5.0, 1.0),), returns="a")
    assert passes(positive, "identity") == {("output 0: in_0", ("recorded",))}
    for admission in (negative, positive):
        assert not admission.degenerate
        assert admission.reasons(("recorded",)) and not admission.reasons(("fresh",))


def test_softmax_of_recorded_values_without_spread_is_constant() -> None:
    specs = (spec("in_0", 0.5, 0.0),)
    admission = admit("a = torch.softmax(in_0, -1)", specs=specs, returns="a")
    assert passes(admission, "constant") == {("output 0", ("recorded",))}
    assert passes(admission, "previous_outputs") == {("output 0", ("recorded",))}
    assert notes(admission, "constant_input") == [("in_0", ("recorded",))]


def test_attention_that_does_not_look_at_its_queries_passes_on_small_recorded_ones() -> None:
    specs = (spec("in_0", std=1e-3), spec("in_1", std=1e-3), spec("in_2"))
    line = "a = torch.nn.functional.scaled_dot_product_attention(in_0, in_1, in_2)"
    admission = admit(line, specs=specs, returns="a")
    op = "op 0 torch.nn.functional.scaled_dot_product_attention: zeros for"
    assert passes(admission, "ignored_argument") == {
        (f"{op} in_0", ("recorded",)),
        (f"{op} in_1", ("recorded",)),
    }
    assert passes(admission, "mean") == {("output 0", ("recorded",))}


def test_skipped_and_zeroed_ops_that_pass_are_named() -> None:
    admission = admit("a = in_0 * 1e-9", "b = in_1 + a", "c = b + 1.0", returns="c")
    assert passes(admission, "skipped_op") == {("op 1 operator.add: its in_1 instead", BOTH)}
    assert passes(admission, "zeroed_op") == {("op 0 operator.mul: zeros instead", BOTH)}


def test_memory_that_is_filled_later_is_not_made_wrong() -> None:
    admission = admit("a = in_0.new_empty(16, 8)", "b = a.copy_(in_1)", "c = b * 2", returns="c")
    assert (admission.degenerate, admission.partial) == ((), ())


def test_every_argument_of_the_right_form_is_tried_for_a_skipped_op() -> None:
    specs = (spec("in_0", 1.0, 0.0), spec("in_1"))
    admission = admit("a = in_1 + 1.0", "b = in_0 * a", specs=specs, returns="b")
    location = "op 1 operator.mul: its a instead"
    assert passes(admission, "skipped_op") == {(location, ("recorded",))}


def test_ops_that_do_nothing_are_noted_and_not_held_against_a_graph() -> None:
    admission = admit(
        "a = in_0.contiguous()",
        "b = torch.nn.functional.dropout(a, 0.5, False, False)",
        "c = b.to(torch.float32)",
        "d = c.type_as(in_1)",
        "e = d + in_1",
        returns="e",
    )
    assert (admission.degenerate, admission.partial) == ((), ())
    assert [location.split(":")[0] for location, _ in notes(admission, "idle_op")] == [
        "op 0 Tensor.contiguous",
        "op 1 torch.nn.functional.dropout",
        "op 2 Tensor.to",
        "op 3 Tensor.type_as",
    ]


@pytest.mark.parametrize("lines", [("b = a.relu_()",), ("a[0] = 0.0",), ("a += in_1",)])
def test_an_op_that_writes_is_skipped_where_it_writes(lines: tuple[str, ...]) -> None:
    admission = admit("a = in_0 + 1.0", *lines, returns="a")
    assert (admission.degenerate, admission.partial) == ((), ())


def test_a_wrong_result_is_written_where_the_right_one_would_be() -> None:
    admission = admit("a = in_0 * 1e-9", "b = a.add_(in_1)", returns="a")
    assert ("op 1 Tensor.add_: its in_1 instead", BOTH) in passes(admission, "skipped_op")
    assert ("op 1 Tensor.add_: zeros for a", BOTH) in passes(admission, "ignored_argument")


def test_what_one_wrong_program_writes_is_not_seen_by_the_next() -> None:
    lines = ("a = in_0 + 1.0", "z = torch.zeros_like(in_1)", "b = a.add_(z)")
    admission = admit(*lines, returns="a")
    assert (admission.degenerate, admission.partial) == ((), ())


def test_an_output_that_is_a_number_is_compared() -> None:
    sound = admit("a = in_0.sum()", "b = a.item()", "c = in_1 + 1.0", returns="b, c")
    assert (sound.degenerate, sound.partial) == ((), ())
    assert not admit("a = in_0.sum()", "b = a.item()", returns="b").degenerate
    fixed = admit("b = in_0.size(0)", returns="b")
    assert passes(fixed, "nothing_to_compute") == {("all outputs", BOTH)}


def test_a_statement_without_a_value_is_left_out() -> None:
    admission = admit("a = in_0 * 1e-9", "a[0] = 0.0", "b = a + in_1", returns="b")
    assert ("op 1 operator.setitem: left out", BOTH) in passes(admission, "skipped_op")


def test_an_argument_written_to_is_compared_like_an_output() -> None:
    sound = admit("a = in_0.mul_(2.0)", "b = in_1 + 1.0", returns="b")
    assert (sound.degenerate, sound.partial) == ((), ())
    zeroed = admit("a = in_0.mul_(0.0)", "b = in_1 + 1.0", returns="b")
    assert ("argument in_0", BOTH) in passes(zeroed, "zeros")


def test_an_argument_written_to_on_some_inputs_only_is_compared_on_all() -> None:
    specs = (spec("in_0", 100.0, 1.0), spec("in_1"))
    admission = admit("a = in_0.clamp_(max=50.0)", "b = in_1 + 1.0", specs=specs, returns="b")
    assert passes(admission, "identity") == {("argument in_0: in_0", ("fresh",))}
    assert not admission.degenerate


def test_an_output_that_is_an_argument_is_noted_unless_it_is_all() -> None:
    some = admit("a = in_0 + in_1", returns="in_0, a")
    assert notes(some, "passed_through") == [("output 0: in_0", BOTH)]
    assert (some.degenerate, some.partial) == ((), ())
    assert passes(admit(returns="in_0"), "nothing_to_compute") == {("all outputs", BOTH)}


def test_a_graph_on_which_nothing_varies_is_degenerate() -> None:
    number = (spec("in_0"), TensorSpec("in_1", (), "int64", data=(3,)))
    lines = ("a = torch.zeros_like(in_0)", "b = a + in_1")
    admission = admit(*lines, specs=number, returns="b")
    assert passes(admission, "nothing_varies") == {("all arguments", BOTH)}
    ones = (spec("in_0"), TensorSpec("in_1", (16, 8), "int64", data=(1,) * 128))
    varying = admit(*lines, "c = b * 3", specs=ones, returns="c")
    assert not passes(varying, "nothing_varies") and not varying.degenerate


def test_views_of_arguments_are_nothing_to_compute_unless_one_is_written_to() -> None:
    views = admit("a = in_0.transpose(0, 1)", "b = in_1[1:]", returns="a, b")
    assert passes(views, "nothing_to_compute") == {("all outputs", BOTH)}
    copied = admit("a = in_0.transpose(0, 1)", "b = a.contiguous()", returns="b")
    assert (copied.degenerate, copied.partial) == ((), ())
    views_written_to = admit("a = in_0.mul_(2.0)", "b = a.transpose(0, 1)", returns="b")
    assert not passes(views_written_to, "nothing_to_compute")


def test_a_wrong_program_that_cannot_run_fails() -> None:
    square = (TensorSpec("in_0", (8, 8), "float32", mean=0.0, std=5.0),)
    admission = admit("a = torch._C._linalg.linalg_inv(in_0)", specs=square, returns="a")
    assert (admission.degenerate, admission.partial) == ((), ())


def test_a_graph_that_cannot_run_is_degenerate() -> None:
    admission = admit("a = in_0 @ in_1", returns="a")
    assert [reason.program for reason in admission.degenerate] == ["reference_error"]


def test_an_output_that_is_not_finite_is_noted() -> None:
    admission = admit("a = in_0 - in_0", "b = in_1 / a", returns="b")
    assert notes(admission, "not_finite") == [("output 0", BOTH)]


def admit_suite(suite: Suite) -> list[Admission]:
    return [admit_graph(graph, AdmissionPlan(compiles=False)) for graph in suite.graphs]


def test_admissions_are_records() -> None:
    graphs = [replace(small_graph((8, size)), name=f"graph-{size}") for size in (4, 8)]
    for admission in admit_suite(make_suite("small", graphs)):
        assert decode(encode(admission), Admission) == admission


def programs(admissions: list[Admission], *kinds: InputKind) -> dict[str, set[str]]:
    """The graphs on which wrong programs pass on all of some input sets, and which."""
    by_graph = {
        admission.graph: {reason.program for reason in admission.reasons(kinds)}
        for admission in admissions
    }
    return {name: passing for name, passing in by_graph.items() if passing}


def test_recorded_inputs_let_wrong_programs_pass_on_real_subgraphs(passnet_samples: Path) -> None:
    admissions = admit_suite(load_suite(str(passnet_samples)))
    recorded = programs(admissions, "recorded")
    by_net = {Path(name).name.split("_start")[0]: passing for name, passing in recorded.items()}
    assert by_net == {
        "transformers_electra-khmer": {"ignored_argument"},
        "timm_coat_lite_medium_0": {"ignored_argument"},
        "timm_coat_lite_medium_3": {"mean", "overall_mean", "zeros"},
        "transformers_robbertje": {"ignored_argument", "mean"},
        "mmpose_ViTPose-H": {"mean"},
    }
    attention = next(admission for admission in admissions if "robbertje" in admission.graph)
    blind = {location for location, _ in passes(attention, "ignored_argument")}
    assert {location.rpartition(" ")[2] for location in blind} == {"in_0", "in_2", "in_4", "in_5"}
    assert not programs(admissions, "fresh")


def only(suite: Suite, *tasks: str) -> Suite:
    return replace(suite, tasks=tuple(task for task in suite.tasks if task.name in tasks))


def test_no_graph_of_demo_small_is_degenerate_and_six_would_be_on_recorded_inputs_alone() -> None:
    admissions = admit_suite(load_suite("demo-small"))
    assert not programs(admissions, *BOTH)
    assert len(programs(admissions, "recorded")) == 6
    assert not programs(admissions, "fresh")


def test_a_skipped_epsilon_shows_in_the_small_rows_of_fresh_inputs_alone() -> None:
    norms = only(load_suite("demo"), "residual_rms_norm")
    assert not programs(admit_suite(norms), "fresh")
    for norm in norms.graphs:
        values = make_inputs(norm.graph, "fresh", 0)
        wrong = make_wrong_programs(norm.graph, [values])
        [epsilon] = [op for op, each in enumerate(norm.graph.program.ops) if 1e-6 in each.args]
        [skipped] = [
            edit for edit in wrong.edits if (edit.kind, edit.op) == ("skipped_op", epsilon)
        ]
        expected, actual = run_program(wrong, values)[1], run_program(wrong, values, skipped)[1]
        assert expected.array is not None and actual.array is not None
        is_small = np.arange(expected.array.shape[-2]) % 4 == 1
        agreements = [
            agrees(actual.array[:, rows], expected.array[:, rows], expected.dtype)
            for rows in (is_small, ~is_small)
        ]
        assert agreements == [False, True], norm.name


@pytest.mark.slow
def test_no_graph_of_demo_is_degenerate() -> None:
    admissions = admit_suite(load_suite("demo"))
    counts = [len(programs(admissions, *kinds)) for kinds in (("recorded",), ("fresh",), BOTH)]
    assert counts == [38, 0, 0]


BRANCHES = (
    "a = in_0 + in_1",
    "b = a.transpose(0, 1)",
    "c = torch.relu(a)",
    "d = torch.matmul(c, b)",
    "parts = d.split(8, dim=1)",
    "e = parts[0]",
    "f = e * in_0",
)


def wrong_programs(*lines: str, returns: str) -> tuple[WrongPrograms, list[InputValue]]:
    graph = graph_of(lines, (spec("in_0"), spec("in_1")), returns)
    values = make_inputs(graph, "fresh", 0)
    return make_wrong_programs(graph, [values]), values


def test_an_edit_that_begins_with_kept_values_gives_what_it_gives_from_the_start() -> None:
    programs, values = wrong_programs(*BRANCHES, returns="f, b, in_0")
    node_values = record_values(programs, values)
    assert node_values is not None and len(programs.edits) > 10
    right = {value.name: value.array for value in run_program(programs, values)}
    for edit in programs.edits:
        changed = {value.name: value.array for value in run_edit(programs, edit, node_values)}
        whole = {value.name: value.array for value in run_program(programs, values, edit)}
        for name, array in whole.items():
            np.testing.assert_array_equal((right | changed)[name], array)
    assert {value.name for value in run_edit(programs, programs.edits[0], node_values)} == {
        "output 0",
        "output 1",
    }
    for value in run_program(programs, values):
        np.testing.assert_array_equal(
            right[value.name], value.array
        )  # no edit changed what was kept


class CalledFunctions(TorchFunctionMode):
    """The names of the functions of torch that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_an_edit_runs_no_more_once_an_output_is_known_to_be_wrong() -> None:
    programs, values = wrong_programs(*BRANCHES, "g = torch.exp(f)", returns="a, g")
    node_values = record_values(programs, values)
    assert node_values is not None
    zeroed = next(edit for edit in programs.edits if edit.kind == "zeroed_op" and edit.op == 0)
    with CalledFunctions() as calls:
        outputs = run_edit(programs, zeroed, node_values)
        assert next(outputs).name == "output 0"
        assert calls.names.count("add") == 1 and not {"matmul", "exp"} & set(calls.names)
        assert [value.name for value in outputs] == ["output 1"]
        assert {"matmul", "exp"} <= set(calls.names)


@pytest.mark.parametrize(
    "line", ["a.mul_(2.0)", "c = torch.nn.functional.dropout(a, 0.5, True, False)", "a += in_1"]
)
def test_where_an_op_writes_or_draws_nothing_is_kept(line: str) -> None:
    programs, values = wrong_programs("a = in_0 + in_1", line, "b = a + 1.0", returns="b")
    assert record_values(programs, values) is None


def test_values_that_are_too_many_are_not_kept() -> None:
    programs, values = wrong_programs(*BRANCHES, returns="f")
    assert record_values(programs, values) is not None
    assert record_values(programs, values, most_bytes=2000) is None
