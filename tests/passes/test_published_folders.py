"""Pass folders in the styles that the published harness led to load, match and compute unchanged.

That harness keeps one replacement function of a folder only, so its passes share one, and append a
word that says what it is to do. The folders here are our own.
"""

from pathlib import Path

import pytest
import torch

from passnet.data.capture.capture import capture
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import STRICT
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.passes.folder import inspect_folder
from tests.passes.graphs import write_folder
from tests.passes.interpreted import Result, job, run_interpreted

pytest.importorskip("triton", reason="triton is not installed")
pytestmark = pytest.mark.xdist_group("triton")

IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n"

KERNELS = """
@triton.jit
def sum_kernel(a_ptr, b_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    a = tl.load(a_ptr + offsets, mask=mask, other=0.0)
    b = tl.load(b_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, a + b, mask=mask)


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, EPS: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    diff = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(diff * diff, axis=0) / N + EPS)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0)
    tl.store(out_ptr + row * N + cols, diff * rstd * w + b, mask=mask)


@triton.jit
def transpose_silu_kernel(x_ptr, out_ptr, ROWS, COLS, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    k = 0
    while k < ROWS * COLS:
        cur = k + tl.arange(0, BLOCK)
        mask = cur < ROWS * COLS
        source = (cur % ROWS) * COLS + cur // ROWS
        x = tl.load(x_ptr + batch * ROWS * COLS + source, mask=mask, other=0.0)
        tl.store(out_ptr + batch * ROWS * COLS + cur, x * tl.sigmoid(x), mask=mask)
        k += BLOCK


def run_sum(in_0, in_1):
    out = torch.empty_like(in_0)
    n_elements = out.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    sum_kernel[grid](
        a_ptr=in_0, b_ptr=in_1, out_ptr=out, n_elements=n_elements, BLOCK_SIZE=256, num_warps=4
    )
    return out


def run_norm(x, w, b):
    out = torch.empty_like(x)
    N = x.shape[-1]
    norm_kernel[(x.numel() // N,)](x, w, b, out, N, 1e-05, BLOCK_N=64, num_warps=2, num_stages=1)
    return out


def run_transpose_silu(x):
    B, R, C = x.shape
    out = torch.empty((B, C, R), device=x.device, dtype=x.dtype)
    transpose_silu_kernel[(B,)](x, out, R, C, BLOCK=128)
    return out
"""

DISPATCHER = """

@torch.fx.wrap
def shared_dispatch(*args):
    route = args[-1]
    if route == "sum":
        return run_sum(args[0], args[1])
    elif route == "norm_40":
        return run_norm(args[0], args[1], args[2])
    elif route == "transpose_silu":
        return run_transpose_silu(args[0])
    raise RuntimeError("unknown route " + str(route))
"""

FUNC = """

def replacement_func():
    return shared_dispatch
"""

SUM = """

def pattern(in_0, in_1):
    tmp_0 = in_0 + in_1
    return tmp_0


def replacement_args(in_0, in_1):
    return (in_0, in_1, "sum")
"""

NORM = '''

def pattern(in_2, in_3, tmp_0):
    """Match: layer_norm(tmp_0, (40,), in_2, in_3, 1e-05)"""
    tmp_1 = torch.nn.functional.layer_norm(tmp_0, (40,), in_2, in_3, 1e-05)
    return (tmp_1,)


def replacement_args(in_2, in_3, tmp_0):
    return (tmp_0, in_2, in_3, "norm_40")
'''

SILU = """

def pattern(x):
    y = torch.nn.functional.silu(x, inplace=False)
    z = y.transpose(1, 2)
    return z.contiguous()


def replacement_args(x):
    return (x, "transpose_silu")
"""

SHARED = IMPORTS + "from pass_dir.kernels import shared_dispatch\n"
OTHER = IMPORTS + "from pass_dir.FuseSum import shared_dispatch\n"
ALONE = IMPORTS + KERNELS + DISPATCHER
LAZY = """

def replacement_func():
    from pass_dir.FuseSum import shared_dispatch
    return shared_dispatch
"""
UNUSED = """

@triton.jit
def _marker_kernel(x_ptr):
    pass
"""

AUTOTUNED = KERNELS.replace(
    "@triton.jit\ndef transpose",
    "@triton.autotune([triton.Config({'BLOCK': size}) for size in (128, 64)], key=['COLS'])\n"
    "@triton.jit\ndef transpose",
).replace("R, C, BLOCK=128)", "R, C)")

STYLES = {
    "a shared module": {
        "FuseSum": SHARED + SUM + FUNC,
        "FuseNorm": SHARED + NORM + UNUSED + FUNC,
        "FuseSilu": SHARED + SILU + FUNC,
        "kernels": IMPORTS + KERNELS + DISPATCHER,
    },
    "the function itself imported": {
        "FuseSum": "import torch\nfrom pass_dir.kernels import replacement_func\n" + SUM,
        "FuseNorm": "import torch\nfrom pass_dir.kernels import replacement_func\n" + NORM,
        "FuseSilu": "import torch\nfrom pass_dir.kernels import replacement_func\n" + SILU,
        "kernels": IMPORTS + KERNELS + DISPATCHER + FUNC,
    },
    "the dispatcher in a pass": {
        "FuseNorm": OTHER + NORM + FUNC,
        "FuseSum": ALONE + SUM + FUNC,
        "FuseSilu": IMPORTS + SILU + LAZY,
    },
    "a copy in each pass": {
        "FuseSum": ALONE + SUM + FUNC,
        "FuseNorm": ALONE + NORM + FUNC,
        "FuseSilu": ALONE + SILU + FUNC,
    },
    "an autotuned kernel": {
        "FuseSum": SHARED + SUM + FUNC,
        "FuseNorm": SHARED + NORM + FUNC,
        "FuseSilu": SHARED + SILU + FUNC,
        "kernels": IMPORTS + AUTOTUNED + DISPATCHER,
    },
    "a route by its name": {
        "FuseSum": (SHARED + SUM + FUNC)
        .replace("dispatch\n", "dispatch, ROUTE_SUM\n", 1)
        .replace('"sum")', "ROUTE_SUM)"),
        "FuseNorm": SHARED + NORM + FUNC,
        "FuseSilu": SHARED + SILU + FUNC,
        "kernels": IMPORTS + KERNELS + DISPATCHER + '\nROUTE_SUM = "sum"\n',
    },
    "ops in replacement_args": {
        "FuseSum": (SHARED + SUM + FUNC).replace("(in_0, in_1, ", "(in_0, in_1.contiguous(), "),
        "FuseNorm": SHARED + NORM + FUNC,
        "FuseSilu": (SHARED + SILU + FUNC).replace('(x, "', '(x.contiguous(), "'),
        "kernels": IMPORTS + KERNELS + DISPATCHER,
    },
}


def net(
    x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    total = x + y
    normed = torch.nn.functional.layer_norm(total, (40,), weight, bias, 1e-05)
    active = torch.nn.functional.silu(normed).transpose(1, 2).contiguous()
    return active, normed + y


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("published")
    shapes = [(2, 9, 40), (2, 9, 40), (40,), (40,)]
    with torch.no_grad():
        [graph] = capture(net, *(torch.randn(shape) for shape in shapes))
    jobs = []
    for style, modules in STYLES.items():
        names = [name for name in modules if name != "kernels"]
        jobs.append(job(style, write_folder(folder / style, names, **modules), graph, "fresh"))
    return run_interpreted(jobs)


@pytest.mark.parametrize("style", STYLES)
def test_every_route_is_taken_and_the_values_stay(
    style: str, interpreted: dict[str, Result]
) -> None:
    result = interpreted[style]
    assert result.problem is None, result
    assert result.matches == {"FuseSum": 2, "FuseNorm": 1, "FuseSilu": 1}
    assert result.t is not None and result.t <= CORRECT_AT


@pytest.mark.parametrize("style", STYLES)
def test_the_inspection_finds_nothing(style: str, tmp_path: Path) -> None:
    modules = STYLES[style]
    names = [name for name in modules if name != "kernels"]
    folder = inspect_folder(write_folder(tmp_path, names, **modules))
    assert folder.unlisted == () and inspect_code(folder, STRICT) == []
