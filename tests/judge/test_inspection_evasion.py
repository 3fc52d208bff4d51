"""Text that evades an inspection or attacks a judge is found, by its right name."""

from pathlib import Path

import pytest

from passnet.judge.inspection.rules import RULES
from tests.judge.inspection_folder import (
    COMPARISON,
    EVASION,
    FOREIGN,
    HARNESS,
    INTROSPECTION,
    LIBRARY,
    METHOD,
    NETWORK,
    NOTHING,
    OP,
    PATCH,
    PATTERN,
    PERSISTENCE,
    PROCESS,
    PROXY,
    THREAD,
    body,
    findings,
    kinds,
)

EVASIONS = {
    "exec": ("exec('x = 1')\n", EVASION),
    "eval by another name": ("e = eval\ne('1')\n", EVASION),
    "eval of builtins": ("import builtins as b\nb.eval('1')\n", EVASION),
    "compile": ("compile('1', '', 'eval')\n", EVASION),
    "__import__": ("__import__('os')\n", EVASION),
    "__builtins__": ("__builtins__['eval']\n", EVASION),
    "pickle": ("import pickle\npickle.loads(b'')\n", EVASION),
    "the interpreter through ctypes": ("import ctypes\nctypes.PyDLL(None)\n", EVASION | FOREIGN),
    "importlib": ("from importlib import import_module as load\nload('json')\n", EVASION),
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
    "an attribute of the pattern": ("code = pattern.code\n", PATTERN),
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
    "a flag of torch": ("torch.backends.cudnn.benchmark = False\n", LIBRARY),
    "a method of Tensor": ("torch.Tensor.sum = 1\n", LIBRARY),
    "statistics": ("import statistics as s\ns.median = min\n", PATCH),
    "an operator of proxies": ("torch.fx.Proxy.__iadd__ = f\n", PROXY),
    "an operator of proxies by setattr": ("setattr(torch.fx.Proxy, '__iadd__', f)\n", PROXY),
    "what records": ("import torch.fx.proxy\ntorch.fx.proxy.Proxy.__eq__ = f\n", PROXY),
    "a function of torch": ("torch.nn.functional.layer_norm = f\n", LIBRARY),
    "a comparison": ("import numpy\nnumpy.allclose = f\n", PATCH),
    "a deletion": ("import time\ndel time.time\n", PATCH),
    "a loop variable": ("import time\nfor time.time in (f,):\n    pass\n", PATCH),
    "a builtin": ("import builtins\nbuiltins.sum = f\n", LIBRARY),
    "a mock": ("from unittest.mock import patch\n", LIBRARY),
    "torch.jit.fork": ("torch.jit.fork(f)\n", THREAD),
    "threading": ("import threading as t\nt.Thread(target=f)\n", THREAD),
    "concurrent.futures": ("from concurrent.futures import ThreadPoolExecutor\n", THREAD),
    "torch.multiprocessing": ("from torch import multiprocessing\n", THREAD),
    "asyncio, inside": ("def fused(x):\n    import asyncio\n", THREAD),
    "subprocess": ("import subprocess\n", PROCESS),
    "os.fork": ("import os\nos.fork()\n", PROCESS),
    "os._exit by name": ("from os import _exit as leave\nleave(0)\n", PROCESS),
    "os.execv": ("import os as o\no.execv('a', [])\n", PROCESS),
    "os from elsewhere": ("from passnet.passes import cpp\ncpp.os.system('a')\n", PROCESS),
    "os of a star": ("from json import *\ncodecs.os.system('a')\n", PROCESS),
    "os, and a decoy of the same name": (
        "import os\ndef run(x):\n    os.system('a')\ngo = run\ndef run(os):\n    pass\n",
        PROCESS,
    ),
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
    "open in a mode that is no text": ("open('f', 0)\n", PERSISTENCE),
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
    "the type of a parameter": (body("isinstance(x, torch.nn.Parameter)"), HARNESS),
    "a type among types": (body("isinstance(x, (list, torch.fx.Proxy))"), HARNESS),
    "a type by is": (body("type(x) is torch.nn.Parameter"), HARNESS),
    "a type by name": (body("type(x).__name__ == 'FakeTensor'"), HARNESS),
    "references": ("import sys\ndef f(x):\n    return sys.getrefcount(x)\n", HARNESS),
    "the collector": ("import gc\ngc.callbacks.append(f)\ngc.isenabled()\n", HARNESS),
    "our worker by name": (
        "import sys\nFLAG = 'passnet.judge.worker' in sys.modules\n",
        HARNESS | INTROSPECTION,
    ),
    "the tests": ("import os\nFLAG = os.environ.get('PYTEST_CURRENT_TEST')\n", HARNESS),
    "its own memory": ("MAPS = open('/proc/self/maps').read()\n", INTROSPECTION),
    "Python in native code": ("SOURCE = 'PyRun_SimpleString(text);'\n", EVASION),
    "its header": ("SOURCE = '#include <Python.h>'\n", EVASION),
    "ctypes": ("import ctypes\n", FOREIGN),
    "numba": ("from numba import njit\n", FOREIGN),
    "an extension": ("from torch.utils import cpp_extension\n", FOREIGN),
}
"""Under both rules."""


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", EVASIONS)
def test_an_evasion_is_found_by_its_name(name: str, rules: str, tmp_path: Path) -> None:
    source, expected = EVASIONS[name]
    found = kinds(findings(tmp_path, source, RULES[rules]))
    assert found - (OP | METHOD if rules == "strict" else NOTHING) == expected


def test_native_code_that_looks_for_a_library_is_flagged_under_strict(tmp_path: Path) -> None:
    source = 'SOURCE = r"""\nvoid* find() { return dlsym(0, "sgemm_"); }\n"""\n'
    assert kinds(findings(tmp_path, source, RULES["strict"])) == METHOD
    assert kinds(findings(tmp_path, source, RULES["open"])) == NOTHING
    text = '"""Needs no dlsym."""\n' + body("torch.empty_like(x)")
    assert kinds(findings(tmp_path, text, RULES["strict"])) == NOTHING


def test_native_sources_in_the_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "run.cpp").write_text("int a;\nint b = PyRun_SimpleString(c);\n")
    [finding] = findings(tmp_path, "", RULES["open"])
    assert (finding.name, finding.place) == ("evasion", "csrc/run.cpp:2")
