"""On random graphs: the rewritten graph computes what the original does, and once is enough."""

import copy
from typing import Any

import torch
import torch.fx
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from passnet.passes.apply.rewrite import apply_passes
from tests.passes.graphs import outcome, pass_of
from tests.passes.programs import Program, cuts, programs, renamed, structure

quick = settings(deadline=None, max_examples=150)


def assert_equal(module: torch.fx.GraphModule, program: Program) -> None:
    """A rewritten graph gives the original's values, and leaves the same ones in its inputs."""
    expected = outcome(program.module, program.inputs)
    actual = outcome(module, program.inputs)
    for a, b in zip(expected, actual, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-9)


def drawn_pass(data: st.DataObject, program: Program, gaps: bool = True) -> Any:
    pattern = data.draw(cuts(program, gaps))
    assume(pattern is not None)
    note(f"graph:{program.module.code}\npattern:{pattern.code}")
    return pass_of(pattern)


@quick
@given(programs(writes=True), st.data())
def test_a_rewritten_graph_gives_the_values_of_the_original(
    program: Program, data: st.DataObject
) -> None:
    module = copy.deepcopy(program.module)
    passes = [drawn_pass(data, program) for _ in range(data.draw(st.integers(1, 2)))]
    apply_passes(module, passes)
    assert_equal(module, program)


@quick
@given(programs(writes=True), programs(writes=True), st.data())
def test_a_pattern_from_another_graph_leaves_the_values(
    program: Program, source: Program, data: st.DataObject
) -> None:
    module = copy.deepcopy(program.module)
    apply_passes(module, [drawn_pass(data, source)])
    assert_equal(module, program)


@quick
@given(programs(writes=False), st.data())
def test_a_range_of_a_graph_that_writes_nothing_is_found_and_once_only(
    program: Program, data: st.DataObject
) -> None:
    module = copy.deepcopy(program.module)
    pass_ = drawn_pass(data, program, gaps=False)
    [first], _ = apply_passes(module, [pass_])
    assert first.num_matches >= 1, first.miss
    assert_equal(module, program)
    [second], _ = apply_passes(module, [pass_])
    assert second.num_matches == 0


@quick
@given(programs(writes=True), st.data())
def test_a_second_run_finds_nothing_that_changes_a_value(
    program: Program, data: st.DataObject
) -> None:
    module = copy.deepcopy(program.module)
    pass_ = drawn_pass(data, program)
    apply_passes(module, [pass_])
    [second], _ = apply_passes(module, [pass_])
    assert_equal(module, program)
    assert second.num_matches == 0


@quick
@given(programs(writes=True), st.data())
def test_names_do_not_matter(program: Program, data: st.DataObject) -> None:
    module, copied_module = copy.deepcopy(program.module), renamed(program.module)
    pass_ = drawn_pass(data, program)
    [report], _ = apply_passes(module, [pass_])
    [report_of_other], _ = apply_passes(copied_module, [pass_])
    assert report.num_matches == report_of_other.num_matches
    assert structure(module) == structure(copied_module)
