"""The parts of compiled calls: what is read of generated code, and what is measured."""

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from passnet.bench.profiling.draw import draw_subjects, shares
from passnet.bench.profiling.record import RESIDUE_SHARE, ProfileSettings
from passnet.core.jobs.run_plan import RunPlan
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
    drawn = shares(sizes, 100, 0)
    assert sum(drawn.values()) == 100 and drawn["one",] == 1
    assert 85 <= drawn["many",] <= 90 and drawn["few",] == 1
    assert sum(shares(sizes, 2, 0).values()) == 2
    assert shares(sizes, 5000, 0) == sizes


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
