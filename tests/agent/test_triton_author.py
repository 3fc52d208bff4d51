"""The compiler as author for CUDA: the Triton that it writes, read without a GPU or Triton.

What it computes is in `test_triton_author_runs.py`.
"""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.agent.authors.compiler import CompilePlan
from passnet.errors import AuthorError
from passnet.graph.spec import Graph
from passnet.inductor.generated_code import BufferSlot, KernelCall, generate
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import STRICT
from passnet.passes.codegen.kernel_text import device_of
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.codegen.triton_kernel import (
    MAX_PROGRAMS,
    BlockSizes,
    TritonKernel,
    launch_of,
    read_kernel,
)
from passnet.passes.codegen.triton_source import functions_text, triton_source
from passnet.passes.files import write_files
from passnet.passes.folder import inspect_folder
from tests.agent.triton_graphs import FORMS, compiler_for, folder_of, graph
from tests.graph.programs import graph_of, program_of


def kernels_of(name: str, **options: object) -> list[TritonKernel]:
    return [
        read_kernel(kernel)
        for kernel in generate(graph(name), None, options, device="cuda").kernels
    ]


@pytest.mark.parametrize("name", FORMS)
def test_a_folder_is_clean_under_the_strict_rules_and_names_no_compiler(
    name: str, tmp_path: Path
) -> None:
    files = folder_of(graph(name))
    write_files(files, tmp_path)
    assert inspect_code(inspect_folder(tmp_path), STRICT) == []
    text = "".join(files.values())
    assert not any(word in text for word in ("_inductor", "libdevice", "triton_helpers", "_NUMBER"))


@pytest.mark.parametrize(
    ("name", "kind", "grid"),
    [
        ("tiles", "pointwise", "Grid2D"),
        ("persistent", "persistent_reduction", "Grid1D"),
        ("looped", "reduction", "Grid1D"),
        ("parts of a buffer", "foreach", "SequentialComboKernelGrid"),
    ],
)
def test_the_small_graphs_have_every_kind_of_kernel(name: str, kind: str, grid: str) -> None:
    assert (kind, grid) in [(kernel.kind, kernel.grid) for kernel in kernels_of(name)]


@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("around")])
@pytest.mark.parametrize(
    "blocks", [BlockSizes(), BlockSizes(values=4096, row=256), BlockSizes(64, 8192, 2)]
)
def test_programs_cover_every_axis_in_blocks_that_are_powers_of_2(
    name: str, blocks: BlockSizes
) -> None:
    for kernel in kernels_of(name):
        launch = launch_of(kernel, blocks)
        sizes = {**kernel.fixed, **{key: launch.keywords[key] for key in kernel.launch_blocks}}
        assert all(size & (size - 1) == 0 for size in sizes.values())
        if kernel.kind == "foreach":
            continue
        axes = [axis for axis in "xyz" if axis in kernel.numels]
        for axis, count in zip(axes, launch.grid, strict=True):
            size, numel = sizes.get(f"{axis.upper()}BLOCK", 1), kernel.numels[axis]
            assert (count - 1) * size < numel <= count * size


def kernel_like(name: str, **changes: object) -> TritonKernel:
    return replace(kernels_of(name)[0], **changes)  # type: ignore[arg-type]


def test_a_small_tensor_gets_small_blocks_and_a_large_one_those_that_are_asked_for() -> None:
    kernel = kernel_like("tiles", grid="Grid1D", launch_blocks=("XBLOCK",))
    sizes = [
        launch_of(replace(kernel, numels={"x": numel}), BlockSizes()).keywords["XBLOCK"]
        for numel in (50, 10_000, 10_000_000)
    ]
    assert sizes == [64, 128, 1024]


def test_rows_that_lie_apart_are_summed_side_by_side() -> None:
    [first, _] = kernels_of("outer sum")
    assert first.is_outer and launch_of(first, BlockSizes()).keywords["XBLOCK"] == 32
    [row] = kernels_of("looped")
    assert not row.is_outer and launch_of(row, BlockSizes()).keywords["XBLOCK"] == 1


def test_an_axis_that_is_too_long_goes_over_into_the_third() -> None:
    numels = {"x": 8, "y": 70_000_000}
    kernel = kernel_like("tiles", grid="Grid2DWithYZOverflow", numels=numels)
    launch = launch_of(kernel, BlockSizes())
    _, rows, layers = launch.grid
    assert rows <= MAX_PROGRAMS and layers > 1
    assert rows * layers * int(launch.keywords["YBLOCK"]) >= numels["y"]
    with pytest.raises(AuthorError, match="too large"):
        launch_of(replace(kernel, grid="Grid2D"), BlockSizes())


def test_a_grid_that_is_not_known_is_refused() -> None:
    with pytest.raises(AuthorError, match="MixOrderReductionGrid is not written"):
        launch_of(kernel_like("tiles", grid="MixOrderReductionGrid"), BlockSizes())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("@triton_heuristics.pointwise", "@triton_heuristics.template", "of the kind template"),
        ("xnumel", "ks0", "its parameter ks0"),
        ("'signature'", "'types'", r"\(signature\)"),
    ],
)
def test_a_kernel_of_another_form_is_refused(old: str, new: str, why: str) -> None:
    [kernel] = generate(graph("tiles"), device="cuda").kernels
    with pytest.raises(AuthorError, match=why):
        read_kernel(replace(kernel, text=kernel.text.replace(old, new)))


def test_a_kernel_that_writes_into_an_argument_is_refused() -> None:
    code = generate(graph("tiles"), device="cuda")
    [call] = code.calls
    wrong = KernelCall(call.kernel, (*call.arguments[:-1], BufferSlot("a")))
    with pytest.raises(AuthorError, match="writes into argument a"):
        triton_source(replace(code, calls=(wrong,)))


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        (["y = torch.lgamma(u)"], "calls libdevice.lgamma, for which"),
        (["x = u.to(torch.float64)", "y = torch.exp(x)"], "libdevice.exp of float64"),
    ],
)
def test_a_function_that_we_have_not_is_left_alone_and_named(calls: list[str], why: str) -> None:
    program = program_of("u = a * 2.0", *calls, params="a", returns="(y,)")
    lowering = GraphLowering(graph_of(program, (8, 8)), "graph", "cuda")
    assert lowering.largest(())[0][1] <= len(calls), "what comes before it is written"
    assert any(why in text for text in lowering.refused.values())


def test_a_task_without_a_kernel_says_why_nothing_is_written() -> None:
    program = program_of("y = torch.lgamma(a)", params="a", returns="(y,)")
    compiler = compiler_for(graph_of(program, (8, 8)))
    with pytest.raises(AuthorError, match=r"nothing to write \(.*libdevice.lgamma"):
        compiler.make_correct()


def test_a_device_without_a_language_is_refused() -> None:
    assert device_of("cuda:1") == "cuda"
    with pytest.raises(AuthorError, match="cpu and cuda, not for mps"):
        device_of("mps")


def test_a_pattern_names_the_device_that_the_graph_is_judged_on() -> None:
    calls = ["x = torch.arange(10, device=device(type='cpu'))", "y = a + x"]
    program = program_of(*calls, params="a", returns="(y,)")
    compiler = compiler_for(graph_of(program, (7, 10)))
    [source] = compiler.sources(0, compiler.plans[0])
    assert "device(type='cuda'" in compiler.folder(compiler.plans)["Fused0.py"]
    assert source.lowered.code.device == "cuda"


def test_only_the_functions_that_are_used_are_copied() -> None:
    def names(*used: str) -> set[str]:
        tree = ast.parse(functions_text(used))
        return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

    assert names("max2") == {"max2", "maximum"}
    assert names("tanh") == {"tanh", "exp"}
    assert "functions.py" not in folder_of(graph("tiles"))


def test_a_folder_serves_graphs_of_other_shapes_and_dtypes() -> None:
    wide = Graph(graph("tiles").program, tuple(
        replace(spec, shape=tuple(2 * size for size in spec.shape))
        for spec in graph("tiles").tensors
    ))  # fmt: skip
    compiler = compiler_for(graph("tiles"), graph("tiles", "bfloat16"), wide)
    files = compiler.folder(compiler.plans)
    assert "Fused1.py" not in files and files["Fused0.py"].count("def form_") == 3


def test_blocks_are_what_a_plan_says() -> None:
    def text(**blocks: int) -> str:
        return folder_of(graph("persistent"), CompilePlan(blocks=BlockSizes(**blocks)))[
            "kernels_0.py"
        ]

    assert "num_warps=2)" in text(num_warps=2) and "num_stages=3" in text(num_stages=3)
    assert "num_stages" not in text()
