"""What Inductor would fuse, without compiling: kernels by op, counts by prefix, plateaus."""

import pytest

from benchmarks.prefix_counts import prefix_kernels
from passnet.data.mine.subgraphs import fusible_ranges
from passnet.errors import FusionError, InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.inductor.fusion import FusionPlan, Kernel, fusion_plan

HEAD = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, {}):\n"


def graph(body, **shapes):
    lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
    program = parse_program(HEAD.format(", ".join(shapes)) + lines)
    specs = tuple(TensorSpec(name, shape, "float32") for name, shape in shapes.items())
    return Graph(program, specs)


def kernels(plan):
    return [sorted(kernel.ops) for kernel in plan.kernels]


POINTWISE = graph(
    """
    a = torch.sigmoid(x)
    b = a * y
    c = torch.relu(b)
    return (c,)
    """.replace("    ", ""),
    x=(4, 64),
    y=(4, 64),
)


def test_pointwise_ops_are_one_kernel():
    plan = fusion_plan(POINTWISE)
    assert kernels(plan) == [[0, 1, 2]]
    assert plan.num_kernels() == [1, 1, 1]
    assert fusible_ranges(plan.num_kernels()) == [(0, 3)]


def test_a_matrix_product_is_a_kernel_of_a_library_and_what_follows_another():
    plan = fusion_plan(
        graph(
            "a = torch.matmul(x, w)\nb = a * y\nc = torch.tanh(b)\nreturn (c,)",
            x=(8, 16),
            w=(16, 16),
            y=(8, 16),
        )
    )
    assert kernels(plan) == [[0], [1, 2]]
    assert [kernel.is_extern for kernel in plan.kernels] == [True, False]
    assert fusible_ranges(plan.num_kernels()) == [(1, 3)]


def test_a_sum_that_the_library_adds_to_its_product_is_in_one_kernel_with_it():
    plan = fusion_plan(
        graph("a = torch.matmul(x, w)\nb = a + y\nreturn (b,)", x=(8, 8), w=(8, 8), y=(8, 8))
    )
    assert kernels(plan) == [[0, 1]] and plan.kernels[0].is_extern


def test_views_make_no_kernel():
    plan = fusion_plan(
        graph("a = x.reshape(64, 4)\nb = a.t()\nc = torch.exp(b)\nreturn (c,)", x=(4, 64))
    )
    assert kernels(plan) == [[2]]
    assert plan.num_kernels() == [0, 0, 1]


def test_a_graph_of_views_has_no_kernel():
    assert fusion_plan(graph("a = x.t()\nreturn (a,)", x=(4, 8))).kernels == ()


def test_what_is_used_where_it_is_stored_is_not_computed_twice():
    plan = fusion_plan(
        graph(
            "a = torch.relu(x)\nb = torch.matmul(a, w)\nc = b * a\nreturn (c,)",
            x=(8, 8),
            w=(8, 8),
        )
    )
    assert kernels(plan) == [[0], [1], [2]]


def test_an_op_in_place_belongs_to_the_kernel_that_stores_it():
    plan = fusion_plan(graph("a = torch.sigmoid(x)\na += y\nreturn (a,)", x=(4, 8), y=(4, 8)))
    assert kernels(plan) == [[0, 1]]


def test_a_graph_that_cannot_be_lowered_is_an_error():
    bad = graph("a = torch.matmul(x, y)\nreturn (a,)", x=(2, 3), y=(2, 3))
    with pytest.raises(FusionError, match="here: Inductor cannot lower it"):
        fusion_plan(bad, "here")


@pytest.mark.parametrize(
    "case",
    [
        POINTWISE,
        graph(
            "a = torch.matmul(x, w)\nb = a + y\nc = torch.relu(b)\nreturn (c,)",
            x=(8, 8),
            w=(8, 8),
            y=(8, 8),
        ),
        graph(
            "a = x.mean(-1, keepdim=True)\nb = x - a\nc = torch.softmax(b, -1)\n"
            "d = torch.matmul(c, w)\ne = torch.tanh(d)\nreturn (e,)",
            x=(16, 32),
            w=(32, 8),
        ),
    ],
    ids=["pointwise", "product", "softmax"],
)
def test_one_plan_counts_as_lowering_every_prefix_does(case):
    assert fusion_plan(case).num_kernels() == prefix_kernels(case)


NORM_OF_A_SUM = graph(
    "a = x + y\nb = a.pow(2)\nc = b.mean(-1, keepdim=True)\nd = torch.rsqrt(c)\ne = a * d\n"
    "return (a, e)",
    x=(64, 256),
    y=(64, 256),
)
BIASED = graph(
    "a = torch.nn.functional.linear(x, w, y)\nb = torch.nn.functional.gelu(a)\nreturn (b,)",
    x=(64, 256),
    w=(256, 256),
    y=(256,),
)
ATTENTION = graph(
    "a = torch.nn.functional.scaled_dot_product_attention(q, k, v)\nb = torch.relu(a)\nreturn (b,)",
    q=(2, 4, 16, 64),
    k=(2, 4, 16, 64),
    v=(2, 4, 16, 64),
)
CONVOLUTION = graph(
    "a = torch.conv2d(x, w, None, (1, 1), (1, 1))\nb = torch.relu(a)\nreturn (b,)",
    x=(2, 16, 32, 32),
    w=(32, 16, 3, 3),
)


BIASED_CONVOLUTION = graph(
    "a = torch.conv2d(x, w, y, (1, 1), (1, 1))\nb = torch.relu(a)\nreturn (b,)",
    x=(2, 16, 32, 32),
    w=(32, 16, 3, 3),
    y=(32,),
)


@pytest.mark.parametrize(
    ("case", "device"),
    [
        (NORM_OF_A_SUM, "cpu"),
        (NORM_OF_A_SUM, "cuda"),
        (BIASED, "cpu"),
        (BIASED, "cuda"),
        (BIASED_CONVOLUTION, "cuda"),
    ],
)
def test_an_op_that_a_shorter_graph_has_elsewhere_does_not_begin_a_kernel(case, device):
    assert fusion_plan(case, device=device).num_kernels() == prefix_kernels(case, device=device)


@pytest.mark.parametrize(
    ("case", "expected", "extern"),
    [
        (POINTWISE, [[0, 1, 2]], [False]),
        (NORM_OF_A_SUM, [[0, 1, 2, 3, 4]], [False]),
        (BIASED, [[0], [0, 1]], [True, False]),
        (ATTENTION, [[0], [1]], [True, False]),
        (CONVOLUTION, [[0], [0], [0], [1]], [False, False, True, False]),
        (
            graph(
                "a = torch.nn.functional.layer_norm(x, (64,), w, y, 1e-05)\nreturn (a,)",
                x=(8, 64),
                w=(64,),
                y=(64,),
            ),
            [[0]],
            [False],
        ),
        (
            graph(
                "a = x + y\nb = torch.relu(a)\nc = b.mean(-1)\nreturn (c,)", x=(8, 64), y=(8, 64)
            ),
            [[0, 1, 2]],
            [False],
        ),
        (
            graph("a = x[0]\nb = a.t()\nc = b.contiguous()\nreturn (c,)", x=(4, 8, 16)),
            [[2]],
            [False],
        ),
    ],
    ids=[
        "pointwise",
        "rms norm",
        "bias",
        "attention",
        "convolution",
        "layer norm",
        "mean",
        "index",
    ],
)
def test_a_gpu_is_planned_for_without_one(case, expected, extern):
    plan = fusion_plan(case, device="cuda")
    assert kernels(plan) == expected
    assert [kernel.is_extern for kernel in plan.kernels] == extern


def test_an_attention_in_parts_that_is_made_one_call_has_all_its_ops_in_it():
    plan = fusion_plan(
        graph(
            "a = k.transpose(-2, -1)\nb = torch.matmul(q, a)\nc = b * 0.125\n"
            "d = torch.softmax(c, -1)\ne = torch.matmul(d, v)\nreturn (e,)",
            q=(2, 4, 16, 64),
            k=(2, 4, 16, 64),
            v=(2, 4, 16, 64),
        )
    )
    assert kernels(plan) == [[1, 2, 3, 4]] and plan.kernels[0].is_extern


def test_a_plan_for_a_gpu_leaves_nothing_behind():
    import ctypes

    import torch

    from passnet.inductor import simulated_gpu as gpu

    library = ctypes.CDLL(str(torch.__path__[0] + "/lib/libc10.so"))
    table = (ctypes.c_void_p * (gpu.META_GUARD + 1)).in_dll(library, gpu.DEVICE_GUARDS)
    before = (list(table), torch.cuda.get_device_properties, torch._C._select_conv_backend)
    first = fusion_plan(BIASED)
    on_gpu = fusion_plan(BIASED, device="cuda")
    with pytest.raises(FusionError):
        fusion_plan(graph("a = torch.matmul(x, y)\nreturn (a,)", x=(2, 3), y=(2, 3)), device="cuda")
    assert fusion_plan(BIASED) == first != on_gpu
    assert (list(table), torch.cuda.get_device_properties, torch._C._select_conv_backend) == before


def test_an_unknown_device_is_an_error():
    with pytest.raises(InputError, match="'tpu' is none of cpu, cuda"):
        fusion_plan(POINTWISE, device="tpu")


def test_prefix_counts_are_of_kernels_that_have_begun():
    plan = FusionPlan(5, (Kernel(frozenset({3, 4}), False, 3), Kernel(frozenset({0, 2}), False, 0)))
    assert plan.num_kernels() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([], []),
        ([1], []),
        ([1, 2, 3], []),
        ([1, 1, 2, 2, 2], [(0, 2), (2, 5)]),
        ([4, 5, 4], [(0, 3)]),
        ([2, 2, 1, 1], [(0, 4)]),
        ([1, 2, 1, 2], [(0, 3)]),
        ([0, 0, 1, 1], [(0, 2), (2, 4)]),
    ],
)
def test_plateaus(counts, expected):
    assert fusible_ranges(counts) == expected


def test_a_negative_count_is_an_error():
    with pytest.raises(InputError, match="negative"):
        fusible_ranges([1, -1])
