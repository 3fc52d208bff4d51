"""The parts of compiled calls: what is read of generated code, and what is measured."""

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from passnet.bench.profiling.draw import draw_subjects, shares
from passnet.bench.profiling.eager_ops import op_times
from passnet.bench.profiling.record import RESIDUE_SHARE, ProfileSettings
from passnet.core.jobs.run_plan import RunPlan
from passnet.errors import InputError, MeasureError
from passnet.inductor.moves import is_move, loop_nests, moves_only, moving_part
from passnet.inductor.timed_program import COUNT, kernels_of, timed_program

MOVE = """{
    #pragma GCC ivdep
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(64L); x0+=(1L))
    {
        if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(48L)))
        {
            alignas(std::max(std::size_t(16), alignof(float))) float tmp1[16*16];
            auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x0), (16));
            tmp0.store(tmp1 + static_cast<int64_t>(16L*x0));
            transpose_mxn<float,static_cast<int64_t>(3L)>(tmp1, (16), out_ptr1 + (x0), (3L));
        }
    }
}"""
SUM = """{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(64L); x0+=(1L))
    {
        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
        tmp_acc0 = tmp_acc0 + tmp0;
    }
    out_ptr0[static_cast<int64_t>(0L)] = tmp_acc0;
}"""
KERNEL = 'extern "C"  void  kernel(const float* in_ptr0,\n  float* out_ptr0)\n{{\n{}\n}}\n'


def test_a_loop_that_only_loads_and_stores_is_a_move_and_a_sum_is_none() -> None:
    assert is_move(MOVE)
    assert not is_move(SUM)
    assert not is_move(MOVE.replace("tmp0.store", "(tmp0 * tmp0).store"))


def test_only_moves_that_no_op_asks_for_count_as_copies() -> None:
    both = KERNEL.format(MOVE + SUM)
    assert list(loop_nests(both)) == [MOVE, SUM]
    assert moves_only("cpp_fused_convolution_0", KERNEL.format(MOVE))
    assert not moves_only("cpp_fused_cat_0", KERNEL.format(MOVE))
    assert not moves_only("cpp_fused_convolution_0", both)
    assert moving_part("cpp_fused_convolution_0", both) == both.replace(SUM, "")
    assert moving_part("cpp_fused_convolution_0", KERNEL.format(MOVE)) is None
    assert moving_part("cpp_fused_clone_0", both) is None


MODULE = '''
cpp_fused_mul_0 = async_compile.cpp_pybinding(["const float*"], """text""")
class Runner:
    def call(self, args):
        arg0, = args
        args.clear()
        assert_size_stride(arg0, (4, ), (1, ))
        buf0 = empty_strided_cpu((4, ), (1, ))
        cpp_fused_mul_0(arg0, reinterpret_tensor(buf0, (4, )))
        buf1 = extern_kernels.convolution(buf0, arg0)
        buf2 = buf1
        del buf1
        aten.copy_(buf0, buf2)
        return (buf2, )
'''


def test_every_kernel_of_a_generated_program_gets_a_clock_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(MODULE)
    assert list(kernels_of(ast.parse(MODULE))) == ["cpp_fused_mul_0"]
    calls: list[str] = []
    module = ModuleType("program")
    module.__file__ = str(path)

    class Kernels:
        def __getattr__(self, name: str):
            return lambda *_: calls.append(name) or name

    vars(module).update(
        extern_kernels=Kernels(),
        aten=Kernels(),
        cpp_fused_mul_0=Kernels().fused,
        assert_size_stride=lambda *_: None,
        empty_strided_cpu=lambda *_: "buffer",
        reinterpret_tensor=lambda *_: "view",
    )
    spent = [0] * (COUNT + 1)
    program = timed_program(lambda args: None, module, spent)
    assert program.kinds == ("generated", "library", "copies")
    assert program.kernels == ("cpp_fused_mul_0",)
    assert program.call(None, ["x"]) == ("convolution",)
    assert calls == ["fused", "convolution", "copy_"]
    assert spent[COUNT] == 3 and all(each > 0 for each in spent[:COUNT])


def test_strata_are_drawn_in_proportion_and_each_at_least_once() -> None:
    sizes = {("many",): 900, ("some",): 90, ("few",): 10, ("one",): 1}
    drawn = {key: share.num_items for key, share in shares(sizes, 100, 0).items()}
    assert sum(drawn.values()) == 100 and drawn["one",] == 1
    assert 85 <= drawn["many",] <= 90 and drawn["few",] == 1
    assert len(shares(sizes, 2, 0)) == 2
    assert {key: share.num_items for key, share in shares(sizes, 5000, 0).items()} == sizes


def test_a_weighted_share_is_right_on_average_with_more_strata_than_items() -> None:
    sizes = {(f"{number:02}",): size for number, size in enumerate([2000, *[100] * 49, *[10] * 50])}
    true = sum(size for size in sizes.values() if size == 100) / sum(sizes.values())
    found, counts = [], []
    for seed in range(2000):
        drawn = shares(sizes, 20, seed)
        assert len(drawn) == 20 and drawn["00",].chance == 1
        weights = {key: share.weight(share.num_items) for key, share in drawn.items()}
        counts.append(sum(weights.values()))
        found.append(sum(weights[key] for key in drawn if sizes[key] == 100) / counts[-1])
    assert sum(counts) / len(counts) == pytest.approx(sum(sizes.values()), rel=0.01)
    assert sum(found) / len(found) == pytest.approx(true, abs=0.01)


def test_a_limit_holds_for_all_sources_together() -> None:
    suites = ["demo", "demo-small", "passbench-v0"]
    assert len(draw_subjects(suites, 11, 0)) == 11
    with pytest.raises(InputError, match="--limit 1: fewer than the 3 sources"):
        draw_subjects(suites, 1, 0)


class Writes(torch.nn.Module):
    """Ops that write to their arguments, and an index that a second write would spoil."""

    def forward(self, index: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        index.add_(1)
        table.unsqueeze_(0)
        found = torch.nn.functional.embedding(index, table.squeeze(0))
        found.mul_(2.0)
        return torch.add(found, 1.0, out=found)


def test_ops_that_write_are_timed_on_arguments_as_they_were() -> None:
    module = torch.fx.symbolic_trace(Writes())
    index, table = torch.zeros(4, dtype=torch.int64), torch.ones(2, 8)
    times = op_times(module, [index, table])
    assert len(times) == 6 and all(op.ms > 0 for op in times)
    assert index.tolist() == [1] * 4 and table.shape == (1, 2, 8), "each op ran once on these"


def test_an_op_that_fails_is_said() -> None:
    module = torch.fx.symbolic_trace(Writes())
    with pytest.raises(MeasureError, match=r"eager torch op by op: IndexError: index out of range"):
        op_times(module, [torch.full((4,), 7), torch.ones(2, 8)])


def test_a_suite_is_drawn_the_same_each_time_and_stands_for_all_of_it() -> None:
    drawn = draw_subjects(["demo"], 20, 0)
    assert drawn == draw_subjects(["demo"], 20, 0)
    assert len(drawn) == 20
    assert sum(item.weight for item in drawn) == pytest.approx(78)


@pytest.mark.slow
def test_the_parts_of_a_real_call_add_up_and_a_second_run_goes_on(tmp_path: Path) -> None:
    from passnet.bench.profiling.run import profile_subjects

    items = draw_subjects(["demo-small"], 3, 0)
    settings = ProfileSettings(attempts=4)
    records = profile_subjects(items[:2], settings, tmp_path / "run")
    assert len(records) == 2
    for record in records:
        assert record.status in ("ok", "unstable"), record.error
        if record.status == "ok":
            assert abs(record.residue_share or 0.0) <= RESIDUE_SHARE
            assert record.parts is not None and record.parts.guards > 0
            assert record.compiled_ms is not None
            assert record.parts.total == pytest.approx(record.compiled_ms, rel=RESIDUE_SHARE)
    seen: list[str] = []
    again = profile_subjects(
        items[:2],
        settings,
        tmp_path / "run",
        RunPlan(resume=True, progress=lambda record: seen.append(record.name)),
    )
    assert {record.name for record in again} == set(seen) == {item.name for item in items[:2]}


def test_a_graph_of_which_inductor_leaves_no_op_is_profiled_too() -> None:
    from passnet.bench.profiling.measure import profiled_call

    def broken(value: torch.Tensor) -> torch.Tensor:
        value = value.contiguous()
        torch._dynamo.graph_break()
        return value + 1

    with profiled_call(broken, (torch.ones(4, 4),), {}) as call:
        assert [len(graph.inductor) for graph in call.layers.called()] == [0, 1]
        assert call.num_graphs == 2
        assert call.num_calls_of("generated") == 1


def test_what_is_compiled_anew_at_each_call_is_not_measured() -> None:
    from passnet.bench.profiling.measure import profiled_call
    from passnet.errors import MeasureError

    calls = [0]

    def restless(value: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return value + calls[0]

    many: Any = torch._dynamo.config
    with (
        many.patch(recompile_limit=100),
        pytest.raises(MeasureError, match="^compiled anew at each call"),
        profiled_call(restless, (torch.ones(4),), {}),
    ):
        pass
    with profiled_call(restless, (torch.ones(4),), {}) as call:
        assert call.num_graphs <= 1, "Dynamo gives up, and eager torch goes on"
