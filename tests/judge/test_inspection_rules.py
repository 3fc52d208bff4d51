"""Uses of torch and forbidden names are found in a pass's text; honest styles are left alone."""

from pathlib import Path

import pytest

from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import OPEN, RULES, STRICT
from passnet.passes.folder import inspect_folder
from tests.judge.inspection_folder import (
    COMPILE,
    EVASION,
    FOREIGN,
    METHOD,
    OP,
    body,
    findings,
    kinds,
)

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "passes").iterdir())

TORCH_OPS = {
    "a call": (body("torch.matmul(x, y)"), OP),
    "a function of torch.nn": (body("torch.nn.functional.silu(x)"), OP),
    "an op below torch.ops": (body("torch.ops.aten.mm(x, y)"), OP),
    "a method called unbound": (body("torch.Tensor.mm(x, y)"), OP),
    "import torch.nn": ("import torch.nn as nn\nnn.Linear(2, 2)\n", OP),
    "from torch import autograd": (body("autograd.grad(x)", "from torch import autograd"), OP),
    "import torch._C as c": (body("c._nn.gelu(x)", "import torch._C as c"), OP),
    "import as": (body("t.matmul(x, y)", "import torch as t"), OP),
    "from import as": (body("mm(x, y)", "from torch import matmul as mm"), OP),
    "a star import": (body("matmul(x, y)", "from torch import *"), OP),
    "a star import over a builtin": (body("sum(x)", "from torch import *"), OP),
    "a module in a variable": (body("f.softmax(x)", "m = torch\nf = m.nn.functional"), OP),
    "a function in a variable": (body("g(x)", "g = torch.relu"), OP),
    "a variable of the function": ("def fused(x):\n    t = torch\n    return t.relu(x)\n", OP),
    "a tuple assignment": (body("t.relu(x)", "n, t = 1, torch"), OP),
    "a chained assignment": (body("t.relu(x)", "n = t = torch"), OP),
    "an annotated assignment": (body("t.relu(x)", "t: object = torch"), OP),
    "a walrus": (body("(t := torch).relu(x)"), OP),
    "a walrus in a comprehension": (body("t.relu(x)", "[t := torch for _ in '.']"), OP),
    "a choice": (body("(torch if x else None).relu(x)"), OP),
    "an or": (body("(None or torch).relu(x)"), OP),
    "a default": (body("t.relu(x)", parameters="x, t=torch"), OP),
    "a keyword default": (body("t.relu(x)", parameters="x, *, t=torch"), OP),
    "getattr of a constant": (body("getattr(torch, 'matmul')(x, y)"), OP),
    "getattr by another name": (body("g(torch, 'matmul')(x, y)", "g = getattr"), OP),
    "a result of a function": (body("lib().relu(x)", "def lib():\n    return torch"), OP),
    "a global of a function": (body("t.relu(x)", "def load():\n    global t\n    t = torch"), OP),
    "a nonlocal": (
        "def fused(x):\n    t = None\n    def load():\n        nonlocal t\n        t = torch\n"
        "    load()\n    return t.relu(x)\n",
        OP,
    ),
    "a name assigned after its use": (
        "def fused(x):\n    for i in x:\n        a = b.relu\n        b = torch\n    return a(x)\n",
        OP,
    ),
    "a module beside a comprehension": (
        body("[t for t in y] and t.relu(x)", "import torch as t"),
        OP,
    ),
    "one branch of two": (
        body("m.relu(x)", "try:\n    import quick as m\nexcept ImportError:\n    m = torch"),
        OP,
    ),
    "through a module that has it": (
        body("cpp.torch.relu(x)", "from passnet.passes import cpp"),
        OP,
    ),
    "a name bound in the pattern": (
        body("mm(x, y)", "def load():\n    global mm\n    mm = torch.mm"),
        OP,
    ),
    "a decorator": ("@torch.jit.ignore\ndef fused(x):\n    return x\n", OP),
    "a default that computes": (body("y", parameters="x, y=torch.eye(3)"), OP),
    "within a chain": (body("f(torch.relu(x)).shape"), OP),
    "a class body": ("class K:\n    f = torch.relu\n", OP),
    "a nested function": ("def fused(x):\n    def f():\n        return torch.relu(x)\n", OP),
    "a lambda": ("fused = lambda x: torch.relu(x)\n", OP),
    "in a triton kernel": ("import triton\n@triton.jit\ndef k(x):\n    torch.relu(x)\n", OP),
    "torch.compile too": (body("torch.compile(f)(x)"), OP | COMPILE),
    "a function that says it is torch's": ("def f(x):\n    pass\nf.__module__ = 'torch'\n", METHOD),
    "@": (body("x @ y"), METHOD),
    "@=": ("def fused(x, y):\n    x @= y\n    return x\n", METHOD),
    "operator.matmul": (body("operator.matmul(x, y)", "import operator"), METHOD),
    "another library of ops": ("import torchvision.ops\n", METHOD),
    "torch handed on": (body("pick(torch)"), EVASION),
    "a helper that the pattern calls": (
        "def helper(x):\n    return torch.relu(x)\ndef fused(x):\n    return x\n",
        OP,
    ),
    "a method called pattern": ("class K:\n    def pattern(self, x):\n        torch.relu(x)\n", OP),
    "a default of the pattern": ("def pattern(x, f=torch.eye(3)):\n    return x\n", OP),
}
"""Under STRICT; under OPEN torch may be used."""

HONEST = {
    "a C++ kernel": """
from passnet.passes import cpp
KERNELS = cpp.kernels("...", "softmax", "ppn")
def fused(x, y):
    out = torch.empty((2, *x.shape), dtype=x.dtype, memory_format=torch.contiguous_format)
    KERNELS[x.dtype](x.data_ptr(), out.data_ptr(), x.numel())
    return out
""",
    "a triton kernel": """
import triton
import triton.language as tl
@triton.autotune(configs=[triton.Config({"B": 64})], key=["n"])
@triton.jit
def kernel(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, v.sum(0) @ v.exp() + tl.max(v, 0))
def fused(x, y):
    out = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, out, x.numel())
    return out
""",
    "from triton import jit": """
from triton import jit
@jit
def kernel(x):
    return x.sum()
""",
    "numpy": """
import numpy as np
def fused(x, y):
    a = x.detach().numpy()
    e = np.exp(a - a.max(-1, keepdims=True))
    return torch.as_tensor(e / e.sum(-1, keepdims=True), dtype=x.dtype), np.ones(3) @ np.ones(3)
""",
    "star of numpy": "from numpy import *\ndef fused(x, y):\n    return exp(x), sum(y)\n",
    "helpers with names of ops": """
def softmax(x):
    return x
class Tiles:
    def __init__(self, side):
        self.side = side
def fused(x, y):
    tiles = Tiles(4)
    tiles.side = 8
    fused.calls = 1
    return softmax(x)
""",
    "a dataclass for configuration": """
from dataclasses import dataclass, replace
@dataclass(frozen=True)
class Config:
    block: int = 64
    mean: float = 0.0
    def __post_init__(self):
        object.__setattr__(self, "block", self.block * 2)
def fused(x, y, config=Config()):
    return torch.full_like(x, config.mean, device=torch.device("cpu"))
""",
    "a cache of sizes": """
import functools, math, os.path
@functools.lru_cache(maxsize=None)
def blocks(n):
    return math.ceil(n / 64), os.path.join("a", "b")
""",
    "several replacement functions": """
def narrow(x): return torch.zeros_like(x)
def wide(x): return torch.ones(x.shape, dtype=torch.bfloat16)
ROUTES = {"narrow": narrow, "wide": wide}
def fused(x, route):
    return ROUTES[route](x)
""",
    "a decorator of its own": """
import functools
def checked(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner
@checked
@torch.fx.wrap
def fused(x: torch.Tensor, y: "torch.Tensor") -> torch.nn.Module:
    return x
""",
    "nested functions and local names like modules": """
import torch as t
def fused(x, y):
    def inner(t):
        return t.permute(1, 0).contiguous().view(-1).stride(0)
    return inner(x), [t.shape for t in (x, y)], t.Size((1,))
""",
    "names that mean something else within": """
import torch as a, torch as b, torch as e, torch as k, torch as m, torch as r
def fused(x, y):
    a, *b = x
    try:
        return a.args, b.args
    except ValueError as e:
        return e.args
    match x:
        case [m, *r]:
            return m.args, r.args
        case {"a": _, **k}:
            return k.args
""",
    "annotations, versions and unbound methods": """
import passnet.passes.cpp
KERNEL = passnet.passes.cpp.kernel("...", "k", "p")
state: torch.nn.Module | None = None
def fused(x: torch.FloatTensor, y):
    return torch.Tensor.contiguous(x), torch.__version__
""",
    "comprehensions and builtins": """
def fused(x, y):
    sizes = {n: s for n, s in enumerate(x.shape)}
    return sum(sizes.values()), max(s for s in x.shape), any(sizes), all(sizes), round(1.5), abs(1)
""",
    "a walrus": """
def fused(x, y):
    if (n := x.numel()) > 4 and (d := x.dtype) in (torch.float32, torch.float16):
        return torch.finfo(d).min, n, d.itemsize
    return x.new_empty(n).copy_(y).clone().to(torch.float32).item()
""",
    "sets, strings and expressions": """
import re, operator
PATTERN = re.compile("a+")
def fused(x, y):
    seen = set()
    seen.add(x.dtype)
    return PATTERN.sub("", "a".upper()), operator.mul(2, 3), x.t().transpose(0, 1)
""",
    "a parameter called pattern": """
def find(pattern, text):
    return pattern in text
def fused(x, y):
    return find("a", "b")
""",
    "a GPU": """
def fused(x, y):
    with torch.cuda.device(x.device), torch.no_grad():
        stream = torch.cuda.current_stream().cuda_stream
        return stream, torch.cuda.get_device_properties(0).multi_processor_count
""",
    "reading a source": """
import os
from pathlib import Path
SOURCE = Path(__file__).with_suffix(".cpp").read_text()
MORE = open("kernel.cpp", "rb").read() + os.environ.get("HOME", "").encode()
""",
    "a pattern of one line": "pattern = lambda x, y: torch.relu(x @ y).exp()\n",
    "a pattern with its own torch": """
import torch.fx
def pattern(x: torch.Tensor, y: torch.Tensor):
    from torch import nn
    return nn.functional.silu(torch.matmul(x, y)).sum()
""",
    "a pattern from another": "from pass_dir.Fuse import pattern as first\npattern = first\n",
    "type names": "from typing import Any\nimport collections.abc\nShape = tuple[int, ...]\n",
    "an old triton": "try:\n    import triton.language as tl\nexcept ImportError:\n    tl = None\n"
    "def fused(x, y):\n    return tl.sum(x)\n",
}
"""No finding under either rules."""

FOREIGN_HONEST = {
    "ctypes": """
import ctypes, functools
@functools.cache
def library():
    return ctypes.CDLL("kernel.so")
LIB = ctypes.CDLL("kernel.so")
LIB.exp.argtypes = [ctypes.c_void_p]
def fused(x, y):
    for dtype in ("float32", "bfloat16"):
        getattr(LIB, f"exp_{dtype}")(x.data_ptr())
    library().softmax(x.data_ptr())
    return LIB.softmax(x.data_ptr())
""",
    "numba": """
import numba
@numba.njit(fastmath=True)
def kernel(a, b):
    return (a @ b).sum()
def fused(x, y):
    return torch.as_tensor(kernel(x.numpy(), y.numpy()))
""",
    "load_inline": """
from torch.utils.cpp_extension import load_inline
MODULE = load_inline("k", "...", functions=["softmax"])
def fused(x, y):
    return MODULE.softmax(x)
""",
}


@pytest.mark.parametrize("name", TORCH_OPS)
def test_torch_that_computes_is_found_under_strict_alone(name: str, tmp_path: Path) -> None:
    source, expected = TORCH_OPS[name]
    assert kinds(findings(tmp_path, source, STRICT)) == expected
    assert kinds(findings(tmp_path, source, OPEN)) == expected & COMPILE


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_style_gives_nothing(name: str, rules: str, tmp_path: Path) -> None:
    assert findings(tmp_path, HONEST[name], RULES[rules]) == []


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", FOREIGN_HONEST)
def test_a_foreign_compiler_is_a_note(name: str, rules: str, tmp_path: Path) -> None:
    assert kinds(findings(tmp_path, FOREIGN_HONEST[name], RULES[rules])) == FOREIGN


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_needs_no_torch_op_but_to_be_matched(path: Path) -> None:
    folder = inspect_folder(path)
    assert inspect_code(folder, OPEN) == []
    assert inspect_code(folder, STRICT) == []
