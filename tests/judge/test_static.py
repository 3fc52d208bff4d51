"""What a pass's text betrays is found under the right name, and honest styles are left alone."""

import json
import sys
from pathlib import Path

import pytest

from passnet.errors import PassFolderError
from passnet.judge.finding import Finding
from passnet.judge.rules import OPEN, RULES, STRICT, Rules
from passnet.judge.static import inspect_code
from passnet.passes.folder import inspect_folder

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "passes").iterdir())
PASS = """
import torch

def pattern(x, y):
    return torch.relu(x @ y).softmax(-1)

def replacement_args(x, y):
    return x, y

def replacement_func():
    return fused
"""
NOTHING: set[tuple[str, str]] = set()
OP = {("reject", "torch_fallback")}
METHOD = {("flag", "torch_fallback")}
EVASION = {("flag", "evasion")}
PATTERN = {("flag", "pattern_called")}
PATCH = {("flag", "timer_patch")}
THREAD = {("flag", "thread")}
PROCESS = {("flag", "process")}
NETWORK = {("flag", "network")}
INTROSPECTION = {("flag", "introspection")}
PERSISTENCE = {("flag", "persistence")}
COMPARISON = {("flag", "overloaded_comparison")}
COMPILE = {("flag", "nested_compile")}
FOREIGN = {("note", "foreign_code")}


def findings(tmp_path: Path, source: str, rules: Rules, **modules: str) -> list[Finding]:
    """The findings in a folder with one pass, whose code besides its pattern is `source`."""
    files = {"Fuse": PASS + source} | modules
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "sorted_output_pass_rule_names.json").write_text(json.dumps(["Fuse"]))
    return inspect_code(inspect_folder(tmp_path), rules)


def kinds(found: list[Finding]) -> set[tuple[str, str]]:
    return {(item.weight, item.name) for item in found}


def body(expression: str, before: str = "", parameters: str = "x, y") -> str:
    return f"{before}\ndef fused({parameters}):\n    return {expression}\n"


TORCH_OPS = {
    "a call": (body("torch.matmul(x, y)"), OP),
    "a function of torch.nn": (body("torch.nn.functional.silu(x)"), OP),
    "an op below torch.ops": (body("torch.ops.aten.mm(x, y)"), OP),
    "a method called unbound": (body("torch.Tensor.mm(x, y)"), OP),
    "import torch.nn": ("import torch.nn\n", OP),
    "from torch import autograd": ("from torch import autograd\n", OP),
    "import torch._C as c": ("import torch._C as c\n", OP),
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
    "a global of a function": (
        body("t.relu(x)", "def load():\n    global t\n    t = torch"),
        OP,
    ),
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
    "in a triton kernel": (
        "import triton\n@triton.jit\ndef k(x):\n    torch.relu(x)\n",
        OP,
    ),
    "torch.compile too": (body("torch.compile(f)(x)"), OP | COMPILE),
    "a method": (body("x.matmul(y)"), METHOD),
    "a method in place": (body("x.add_(y)"), METHOD),
    "a method of a result": (body("x.contiguous().softmax(-1)"), METHOD),
    "a method of what torch gave": (body("torch.empty_like(x).sum()"), METHOD),
    "a method in a variable": ("def fused(x, y):\n    f = x.matmul\n    return f(y)\n", METHOD),
    "a method by name": (body("getattr(x, 'matmul')(y)"), METHOD),
    "a method of the type": (body("type(x).matmul(x, y)"), METHOD),
    "a method that map calls": (body("list(map(x.matmul, y))"), METHOD),
    "a method of what numpy may have been": (
        "import numpy as np\ndef fused(x):\n    a = np.ones(3)\n    a = x\n    return a.sum()\n",
        METHOD,
    ),
    "a method of a result beside a star": (
        body("f(x).sum()", "from torch import *\ndef f(x):\n    pass"),
        METHOD,
    ),
    "a method of an element": (body("[x][0].sum()"), METHOD),
    "a method under a decorator called jit": (
        "def jit(f):\n    return f\n@jit\ndef fused(x):\n    return x.sum()\n",
        METHOD,
    ),
    "@": (body("x @ y"), METHOD),
    "@=": ("def fused(x, y):\n    x @= y\n    return x\n", METHOD),
    "operator.matmul": (body("operator.matmul(x, y)", "import operator"), METHOD),
    "another library of ops": ("import torchvision.ops\n", METHOD),
    "torch handed on": (body("pick(torch)"), EVASION),
    "a method by operator": (body("o.methodcaller('mm', y)(x)", "import operator as o"), EVASION),
    "a helper that the pattern calls": (
        "def helper(x):\n    return torch.relu(x)\ndef fused(x):\n    return x\n",
        OP,
    ),
    "a method called pattern": ("class K:\n    def pattern(self, x):\n        torch.relu(x)\n", OP),
    "a default of the pattern": ("def pattern(x, f=torch.eye(3)):\n    return x\n", OP),
}
"""Under STRICT; under OPEN torch may be used."""

EVASIONS = {
    "exec": ("exec('x = 1')\n", EVASION),
    "eval by another name": ("e = eval\ne('1')\n", EVASION),
    "eval of builtins": ("import builtins as b\nb.eval('1')\n", EVASION),
    "compile": ("compile('1', '', 'eval')\n", EVASION),
    "__import__": ("__import__('os')\n", EVASION),
    "__builtins__": ("__builtins__['eval']\n", EVASION),
    "importlib": ("from importlib import import_module\n", EVASION),
    "globals": ("globals()['a'] = 1\n", EVASION),
    "getattr of torch, computed": (body("getattr(torch, name)(x)"), EVASION),
    "getattr of torch.cuda, computed": (body("getattr(torch.cuda, name)(x)"), EVASION),
    "a pasted name": (body("getattr(x, 'mat' + 'mul')(y)"), EVASION),
    "vars of torch": (body("vars(torch)['relu']"), EVASION),
    "__dict__ of torch": (body("torch.__dict__['relu']"), EVASION),
    "what a function is a method of": (body("torch.empty.__self__"), EVASION),
    "__globals__": (body("fused.__globals__"), EVASION),
    "__subclasses__": (body("().__class__.__base__.__subclasses__()"), EVASION),
    "a search path": ("import sys\nsys.path.insert(0, '.')\n", EVASION),
    "our own machinery": ("from passnet.judge import worker\n", EVASION),
    "exec in the pattern": ("def pattern(x):\n    exec('1')\n    return x\n", EVASION),
    "a global set by the pattern": (
        "def pattern(x):\n    global a\n    a = 1\n    return x\n",
        EVASION,
    ),
    "the pattern called": (body("pattern(x, y)"), PATTERN),
    "the arguments called": (body("replacement_args(x, y)"), PATTERN),
    "the pattern as replacement": ("fused = pattern\n", PATTERN),
    "the pattern handed on": (body("call(pattern, x)"), PATTERN),
    "the pattern of the module itself": (
        body("me.pattern(x)", "import pass_dir.Fuse as me"),
        PATTERN,
    ),
    "the pattern of a star": ("from pass_dir.Fuse import *\nf = pattern\n", PATTERN),
    "the pattern to a decorator": ("@keep\ndef pattern(x):\n    return x\n", PATTERN),
    "a clock": ("import time\ntime.perf_counter = lambda: 0\n", PATCH),
    "a clock among targets": ("import time\na, time.time = 1, 2\n", PATCH),
    "a clock by setattr": ("import time\nsetattr(time, 'time', f)\n", PATCH),
    "a clock by object": ("import time\nobject.__setattr__(time, 'time', f)\n", PATCH),
    "an event": ("torch.cuda.Event = object\n", PATCH),
    "a flag of torch": ("torch.backends.cudnn.benchmark = False\n", PATCH),
    "a method of Tensor": ("torch.Tensor.sum = 1\n", PATCH),
    "statistics": ("import statistics as s\ns.median = min\n", PATCH),
    "a deletion": ("import time\ndel time.time\n", PATCH),
    "a loop variable": ("import time\nfor time.time in (f,):\n    pass\n", PATCH),
    "a mock": ("from unittest.mock import patch\n", PATCH),
    "torch.jit.fork": ("torch.jit.fork(f)\n", THREAD),
    "threading": ("import threading\n", THREAD),
    "concurrent.futures": ("from concurrent.futures import ThreadPoolExecutor\n", THREAD),
    "torch.multiprocessing": ("from torch import multiprocessing\n", THREAD),
    "asyncio, inside": ("def fused(x):\n    import asyncio\n", THREAD),
    "subprocess": ("import subprocess\n", PROCESS),
    "os.fork": ("import os\nos.fork()\n", PROCESS),
    "os._exit by name": ("from os import _exit as leave\nleave(0)\n", PROCESS),
    "os.execv": ("import os as o\no.execv('a', [])\n", PROCESS),
    "os from elsewhere": ("from passnet.passes import cpp\ncpp.os.system('a')\n", PROCESS),
    "socket": ("import socket\n", NETWORK),
    "urllib": ("from urllib.request import urlopen\n", NETWORK),
    "gc": ("import gc\ngc.get_objects()\n", INTROSPECTION),
    "a frame": ("import sys\nsys._getframe(1)\n", INTROSPECTION),
    "a frame's frame": (body("x.f_back"), INTROSPECTION),
    "a frame's names, by name": (body("getattr(x, 'f_locals')"), INTROSPECTION),
    "inspect": ("from inspect import stack\n", INTROSPECTION),
    "sys.modules": ("from sys import modules as m\nm['time']\n", INTROSPECTION),
    "open to write": ("open('f', 'wb')\n", PERSISTENCE),
    "open in some mode": ("def f(m):\n    open('f', mode=m)\n", PERSISTENCE),
    "open of unpacked arguments": ("open(*a)\n", PERSISTENCE),
    "Path.open": ("from pathlib import Path\nPath('f').open('a')\n", PERSISTENCE),
    "Path.write_text": ("from pathlib import Path\nPath('f').write_text('')\n", PERSISTENCE),
    "the environment": ("import os\nos.environ['A'] = '1'\n", PERSISTENCE),
    "the environment updated": ("from os import environ\nenviron.update(A='1')\n", PERSISTENCE),
    "tempfile": ("import tempfile\n", PERSISTENCE),
    "shared memory": ("from multiprocessing import shared_memory\n", PERSISTENCE),
    "__eq__": ("class K:\n    def __eq__(self, o):\n        return True\n", COMPARISON),
    "__eq__, assigned": ("class K:\n    __eq__ = yes\n", COMPARISON),
    "__torch_function__": (
        "class K:\n    def __torch_function__(self):\n        pass\n",
        COMPARISON,
    ),
    "a tensor's subclass": ("from torch import Tensor as T\nclass K(T):\n    pass\n", COMPARISON),
    "ctypes": ("import ctypes\n", FOREIGN),
    "numba": ("from numba import njit\n", FOREIGN),
    "an extension": ("from torch.utils import cpp_extension\n", FOREIGN),
}
"""Under both rules."""

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
@pytest.mark.parametrize("name", EVASIONS)
def test_an_evasion_is_found_by_its_name(name: str, rules: str, tmp_path: Path) -> None:
    source, expected = EVASIONS[name]
    found = kinds(findings(tmp_path, source, RULES[rules]))
    assert found - (OP | METHOD if rules == "strict" else NOTHING) == expected


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_style_gives_nothing(name: str, rules: str, tmp_path: Path) -> None:
    assert findings(tmp_path, HONEST[name], RULES[rules]) == []


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", FOREIGN_HONEST)
def test_a_foreign_compiler_is_a_note(name: str, rules: str, tmp_path: Path) -> None:
    assert kinds(findings(tmp_path, FOREIGN_HONEST[name], RULES[rules])) == FOREIGN


IMPORTS = {
    "from pass_dir.kernel import run": "run(x)",
    "import pass_dir.kernel as k": "k.run(x)",
    "import pass_dir.kernel": "pass_dir.kernel.run(x)",
    "from pass_dir import kernel": "kernel.run(x)",
    "from . import kernel": "kernel.run(x)",
    "from .kernel import run as go": "go(x)",
    "from .kernel import *": "run(x)",
    "from pass_dir.middle import run": "run(x)",
    "from .inner.deep import run": "run(x)",
}
MIDDLE = "from .kernel import run\n"
DEEP = "from ..kernel import run\n"
KERNEL = "import torch\ndef run(x):\n    return torch.relu(x)\n"


@pytest.mark.parametrize("statement", IMPORTS)
def test_a_module_is_inspected_however_it_is_imported(statement: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deep.py").write_text(DEEP)
    source = body(IMPORTS[statement], statement)
    found = findings(tmp_path, source, STRICT, kernel=KERNEL, middle=MIDDLE)
    assert [(item.name, item.place) for item in found] == [("torch_fallback", "kernel.py:3")]
    assert found[0].evidence == "torch.relu: `return torch.relu(x)`"


@pytest.mark.parametrize("statement", IMPORTS)
def test_an_alias_is_followed_through_modules(statement: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "deep.py").write_text(DEEP)
    kernel = "import torch\nrun = torch.relu\n"
    source = body(IMPORTS[statement], statement)
    found = findings(tmp_path, source, STRICT, kernel=kernel, middle=MIDDLE)
    line = (PASS + source).splitlines().index(f"    return {IMPORTS[statement]}") + 1
    assert {item.place for item in found} >= {"kernel.py:2", f"Fuse.py:{line}"}


def test_a_package_runs_and_is_inspected_with_what_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "__init__.py").write_text("from . import deep\nimport socket\n")
    (tmp_path / "inner" / "deep.py").write_text("import threading\n")
    found = findings(tmp_path, "import pass_dir.inner.deep\n", OPEN)
    assert [(item.name, item.place) for item in found] == [
        ("network", "inner/__init__.py:2"),
        ("thread", "inner/deep.py:1"),
    ]


def test_a_module_that_nobody_imports_is_left_alone(tmp_path: Path) -> None:
    assert findings(tmp_path, "", STRICT, kernel=KERNEL) == []


@pytest.mark.parametrize("beside", [True, False])
def test_input_passes_and_their_modules_are_inspected(beside: bool, tmp_path: Path) -> None:
    folder = tmp_path / "passes"
    inputs = (tmp_path if beside else folder) / "const_pass_dir"
    folder.mkdir()
    inputs.mkdir()
    (inputs / "sorted_input_pass_rule_names.json").write_text('["First"]')
    (inputs / "First.py").write_text(PASS + "from const_pass_dir.kernel import run\nrun(1)\n")
    (inputs / "kernel.py").write_text(KERNEL)
    found = findings(folder, "from const_pass_dir.First import pattern as p\np(1)\n", STRICT)
    assert {(item.name, item.place) for item in found} == {
        ("torch_fallback", "const_pass_dir/kernel.py:3"),
        ("pattern_called", "Fuse.py:13"),
    }


def test_modules_that_import_each_other_are_inspected_once(tmp_path: Path) -> None:
    a = "from pass_dir.b import *\nfrom pass_dir.b import x\nimport socket\n"
    b = "from pass_dir.a import *\nfrom pass_dir.a import x\nimport socket\nx.y(z)\n"
    found = findings(tmp_path, "from pass_dir.a import x\n", OPEN, a=a, b=b)
    assert [item.place for item in found] == ["a.py:3", "b.py:3"]


def test_findings_are_ordered_and_one_a_name_and_line_the_heaviest(tmp_path: Path) -> None:
    source = (
        "z = 1\ndef fused(x, y):\n    x.mm(torch.relu(x.relu()))\n    import socket, threading\n"
    )
    source += "    x.mm(y)\n"
    found = findings(tmp_path, source, STRICT)
    assert [(item.weight, item.name, item.place) for item in found] == [
        ("reject", "torch_fallback", "Fuse.py:14"),
        ("flag", "network", "Fuse.py:15"),
        ("flag", "thread", "Fuse.py:15"),
        ("flag", "torch_fallback", "Fuse.py:16"),
    ]


def test_evidence_is_one_short_line(tmp_path: Path) -> None:
    found = findings(tmp_path, f"torch.relu({'1 + ' * 99} 1)\n", STRICT)
    assert found[0].evidence.startswith("torch.relu: `torch.relu(1 + 1")
    assert len(found[0].evidence) < 130 and "\n" not in found[0].evidence


@pytest.mark.parametrize("file", ["kernel.so", "kernel.cpython-311-x86_64-linux-gnu.so", "Fuse.so"])
def test_a_module_without_source_is_found(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(b"\x7fELF")
    found = findings(tmp_path, "import pass_dir.kernel\n", OPEN)
    assert kinds(found) == EVASION and file in found[0].evidence


def test_a_declared_encoding_counts_as_it_does_for_python(tmp_path: Path) -> None:
    kernel = "# coding: unicode_escape\nx = 1 # \\nimport socket\n"
    assert kinds(findings(tmp_path, "from .kernel import x\n", OPEN, kernel=kernel)) == NETWORK


BROKEN = {
    "not Python": ("def run(:\n", r"kernel.py:1: not Python"),
    "not text": ("x = '\0'\n", r"kernel.py.*(not Python|cannot be read)"),
    "an unknown encoding": ("# coding: nothing\nx = 1\n", r"kernel.py.*not Python"),
    "a deep expression": (
        "x = " + "-" * 50_000 + "1\n",
        r"kernel.py.*(read|not Python)|too deeply",
    ),
    "a deep walk": ("x = y" + ".a()" * 900 + "\n", "too deeply"),
    "a large file": ("x = 1\n" * 1_000_000, r"kernel.py: larger than"),
    "a name for everything": (
        "import torch as x\n" + "x = x.a\n" * 100,
        "pass_dir.inner.kernel: x stands for more than 64 things",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_helper_module_that_cannot_be_read_is_one_clear_error(name: str, tmp_path: Path) -> None:
    text, message = BROKEN[name]
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "kernel.py").write_text(text)
    with pytest.raises(PassFolderError, match=message):
        findings(tmp_path, "from .inner.kernel import x\n", STRICT)


def test_too_many_modules_are_one_clear_error(tmp_path: Path) -> None:
    chain = {f"m{i}": f"from . import m{i + 1}\n" for i in range(120)}
    with pytest.raises(PassFolderError, match="more than 100 modules; put some of them together"):
        findings(tmp_path, "from . import m0\n", OPEN, **chain)


def test_nothing_of_the_folder_runs(tmp_path: Path) -> None:
    left = tmp_path / "left"
    findings(tmp_path, f"open({str(left)!r}, 'w')\n", OPEN)
    assert not left.exists() and "pass_dir.Fuse" not in sys.modules


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_needs_no_torch_op_but_to_be_matched(path: Path) -> None:
    """`pool_concat` writes what its patterns share as a helper, which text cannot tell from use."""
    folder = inspect_folder(path)
    assert inspect_code(folder, OPEN) == []
    shared = ["torch.nn.functional.max_pool2d"] if path.name == "pool_concat" else []
    assert [item.evidence.split(":")[0] for item in inspect_code(folder, STRICT)] == shared
