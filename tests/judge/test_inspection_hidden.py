"""Names and native code that hide from readers are found; what only looks alike is not."""

from pathlib import Path

import pytest

from passnet.errors import PassFolderError
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import OPEN, RULES, STRICT
from passnet.passes.folder import LIST_FILE, inspect_folder
from tests.conftest import CORPUS
from tests.judge.inspection_folder import EVASION, INTROSPECTION, OP, body, findings, kinds

COMPUTED = {
    "computed getattr of torch of numpy": "import numpy as np\n" + body("getattr(np, 'sys'[::-1])"),
    "sys.modules computed": "import sys\nN='hcrot'[::-1]\n" + body("sys.modules[N].softmax(x, -1)"),
    "globals": body("globals()['hcrot'[::-1]]"),
    "frames": "import sys\n" + body("getattr(sys, 'emarfteg_'[::-1])()"),
    "__import__": body("__import__('hcrot'[::-1])"),
    "builtins dict": body("__builtins__['lave'[::-1]]"),
    "dunder dict": "class A:\n    pass\n" + body("x.__dict__['a']"),
    "setattr computed": body("setattr(x, y, 1)"),
    "getattr param": body("getattr(x, name)", parameters="x, name"),
    "getattr loop": "NAMES = open('a').read().split()\n" + body("[getattr(x, n) for n in NAMES]"),
    "join": body("getattr(x, ''.join(['soft', 'max']))(-1)"),
    "plus": body("getattr(x, 'soft' + 'max')(-1)"),
    "fstring": body("getattr(x, f'soft{chr(109)}ax')(-1)"),
    "bound getattr partial": "import functools\n"
    + body("functools.partial(getattr, x)('softmax')(-1)"),
    "getattr in dict": body("{'a': getattr}['a'](x, 'softmax')(-1)"),
    "cpp.sys": "from passnet.passes import cpp\n" + body("cpp._checked_call"),
    "loader": body("__loader__.load_module('torch')"),
    "spec": body("__spec__.loader"),
    "traceback": body("getattr(e.__traceback__, 'emarf_bt'[::-1])", parameters="x, e"),
    "type getattribute": body("type.__getattribute__(x, 'xamtfos'[::-1])"),
    "inner getattribute": body("x.__getattribute__('xamtfos'[::-1])"),
    "own module computed": "import pass_dir.Fuse as me\n" + body("getattr(me, 'hcrot'[::-1])"),
    "b64": "import base64\n" + body("base64.b64decode(x)"),
}
NATIVE = {
    "pasted": '#define J(a,b) a##b\nextern "C" int J(Py,Run_SimpleString)(const char*);',
    "pasted twice": "#define A(x) Py##x\n#define B A(Run_SimpleString)\nextern int B(const char*);",
    "spliced": 'extern "C" int Py\\\nRun_SimpleString(const char*);',
    "literals": 'const char* p = "libpy" "thon3.so";',
    "escaped": 'const char* p = "libpyth\\x6fn3.so";',
    "octal": 'const char* p = "libpyth\\157n3.so";',
    "digraph": "%:define J(a,b) a%:%:b\nint J(Py,Run_SimpleString);",
    "string macro": '#define S(x) #x\nconst char* p = S(libpython3) ".so";',
    "ucn": "int \\u0050yRun_SimpleString();",
}
BELOW_THE_DISPATCHER = {
    "at cpu": "at::Tensor f(at::Tensor x){ return at::cpu::softmax(x, -1); }",
    "at native": "auto y = at::native::softmax(x, -1);",
    "pasted at": "#define N na##tive\nauto y = at::N::softmax(x, -1);",
    "alias": "namespace q = at;\nauto y = q::native::softmax(x);",
    "using": "using namespace at;\nauto y = native::softmax(x);",
    "reopened": "namespace at { namespace cpu { Tensor relu(const Tensor&); } }",
    "header": "#include <ATen/CPUFunctions.h>",
    "op header": "#include <ATen/ops/softmax_native.h>",
    "op header2": "#include <ATen/ops/_softmax_cpu_dispatch.h>",
    "shim": 'extern "C" int aoti_torch_cpu_softmax(void*);',
    "mangled": 'extern void f() asm("_ZN2at3cpu4reluERKNS_6TensorE");',
    "cuda": "auto y = at::cuda::relu(x);",
}
HONEST_NATIVE = {
    "an extension": """
#include <torch/extension.h>
#include <ATen/ops/empty_like.h>
torch::Tensor add(torch::Tensor x) {
  auto out = torch::empty_like(x);
  auto stream = at::cuda::getCurrentCUDAStream();
  run<<<1, 1, 0, stream>>>(x.data_ptr<float>());
  return out;
}
namespace cpu { void run(); }
void both() { cpu::run(); }
""",
    "macros": """
#include <cmath>
#define UNROLL(n) _Pragma("unroll")
#define MAKE(T) extern "C" void run_##T(const T* x, T* y){ y[0] = x[0]; }
MAKE(float) MAKE(double)
static const char* error = "bad" " shape";
""",
}
GRAPH = """
import operator, torch
def build():
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.output(graph.call_function(torch.relu, (graph.call_function(operator.add, (x, y)),)))
    return graph
"""
MADE = GRAPH + "made = torch.fx.GraphModule(torch.nn.Module(), build())\n"
REST = """
import torch
def fused(x, y):
    return torch.empty_like(x)
def replacement_args(x, y):
    return x, y
def replacement_func():
    return fused
"""
SHAPES = "import torch\ndef first(x, y):\n    return torch.relu(x + y)\n"
SHAPES += "def second(x, y):\n    return torch.sigmoid(x + y)\n"
OWN_PATH = "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
HONEST = {
    "a pattern of a module": ("from pass_dir.shapes import first as pattern", SHAPES),
    "a pattern of a module, bare": (OWN_PATH + "from shapes import first as pattern", SHAPES),
    "a pattern of a relative module": (
        "from .shapes import first, second\npattern = first",
        SHAPES,
    ),
    "a graph of a module": ("from pass_dir.shapes import made as pattern", MADE),
    "a graph of a module that has it": ("import pass_dir.shapes as s\npattern = s.made", MADE),
    "a graph that a module builds": (
        "from pass_dir.shapes import build\npattern = torch.fx.GraphModule({}, build())",
        GRAPH,
    ),
    "a graph with a signature": (
        "from pass_dir.shapes import made\nimport inspect\n"
        "made.__signature__ = inspect.Signature([])\npattern = made",
        MADE,
    ),
    "a graph by getattr": (
        'fx = getattr(torch, "fx")\ng = getattr(fx, "Graph")()\nx = g.placeholder("x")\n'
        'g.output(g.call_function(torch.relu, (x,)))\npattern = getattr(fx, "GraphModule")({}, g)',
        "",
    ),
    "a graph of a module of torch": (
        'import sys\ng = sys.modules["torch.fx"].Graph()\nx = g.placeholder("x")\n'
        "g.output(g.call_function(torch.relu, (x,)))\n"
        'pattern = sys.modules["torch.fx"].GraphModule({}, g)',
        "",
    ),
    "a graph that is built once": (
        "from pass_dir.shapes import build\n_made = None\ndef _pattern():\n    global _made\n"
        "    if _made is None:\n        _made = build()\n    return _made\npattern = _pattern()",
        GRAPH,
    ),
    "a class that records": (
        "class Own:\n    @classmethod\n    def __torch_function__(cls, f, types, args=()):\n"
        "        return torch.relu(args[0])\ndef pattern(x, y):\n    return torch.relu(Own(x) + y)",
        "",
    ),
    "a hash of an op": ("KEY = hash(torch.relu)\ndef pattern(x, y):\n    return x + y", ""),
    "a registry": (
        "import sys\nKEY = __name__ + '_registry'\nif KEY not in sys.modules:\n"
        "    sys.modules[KEY] = {}\nSEEN = sys.modules[KEY]\ndef pattern(x, y):\n    return x + y",
        "",
    ),
    "its parent on Python's path": (
        "import os, sys\nsys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))\n"
        "from pass_dir.shapes import first as pattern",
        SHAPES,
    ),
    "a module by a function": (
        "import importlib.util, os, sys\ndef load(name):\n"
        "    path = os.path.join(os.path.dirname(__file__), name + '.py')\n"
        "    spec = importlib.util.spec_from_file_location(name, path)\n"
        "    sys.modules[name] = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(sys.modules[name])\n    return sys.modules[name]\n"
        "LIMIT = load('shapes').LIMIT\ndef pattern(x, y):\n    return x + y",
        "LIMIT = 3\n",
    ),
    "an attribute of an own object": (
        "class Own:\n    def __init__(self):\n        self.a = 1\n    def read(self, name):\n"
        "        return getattr(self, name)\nOWN = Own()\nONE = getattr(OWN, 'a'[::-1])\n"
        "def pattern(x, y):\n    return x + y",
        "",
    ),
}
USED = {
    "a pattern of a module that is called": (
        "from pass_dir.shapes import first as pattern\ndef fused(x, y):\n    return pattern(x, y)",
        SHAPES,
    ),
    "a part of a graph": (
        "from pass_dir.shapes import build, made as pattern\ndef fused(x, y):\n"
        "    return [*build().nodes][3].target(x)",
        MADE,
    ),
    "a helper of both": (
        "from pass_dir.shapes import first as pattern, second\nfused = second",
        SHAPES,
    ),
}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", COMPUTED)
def test_a_name_that_text_does_not_tell_is_an_evasion(
    name: str, rules: str, tmp_path: Path
) -> None:
    found = kinds(findings(tmp_path, COMPUTED[name], RULES[rules]))
    assert found & (EVASION | INTROSPECTION), found


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("name", NATIVE)
def test_native_code_is_read_as_its_compiler_reads_it(
    name: str, is_file: bool, tmp_path: Path
) -> None:
    if is_file:
        (tmp_path / "kernel.cpp").write_text(NATIVE[name])
    source = "" if is_file else f"SOURCE = r'''{NATIVE[name]}'''\n"
    assert kinds(findings(tmp_path, source, OPEN)) == EVASION


@pytest.mark.parametrize("name", BELOW_THE_DISPATCHER)
def test_entries_below_the_dispatcher_are_rejected_under_strict_rules(
    name: str, tmp_path: Path
) -> None:
    source = f"SOURCE = r'''{BELOW_THE_DISPATCHER[name]}'''\n"
    assert kinds(findings(tmp_path, source, STRICT)) >= OP
    assert not findings(tmp_path, source, OPEN)


@pytest.mark.parametrize("name", HONEST_NATIVE)
def test_honest_native_code_gives_nothing(name: str, tmp_path: Path) -> None:
    assert not findings(tmp_path, f"SOURCE = r'''{HONEST_NATIVE[name]}'''\n", STRICT)


def test_macros_of_a_header_count_and_endless_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "words.h").write_text("#define J(a, b) a##b\n")
    (tmp_path / "kernel.cpp").write_text('#include "words.h"\nint J(Py,Run_SimpleString);\n')
    assert kinds(findings(tmp_path, "", OPEN)) == EVASION
    doubled = "".join(f"#define A{number} A{number - 1} A{number - 1}\n" for number in range(1, 40))
    (tmp_path / "kernel.cpp").write_text(f"#define A0 x x\n{doubled}A39\n")
    with pytest.raises(PassFolderError, match="macros"):
        findings(tmp_path, "", OPEN)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", HONEST)
def test_a_pattern_may_come_from_anywhere_in_the_folder(
    name: str, rules: str, tmp_path: Path
) -> None:
    source, shapes = HONEST[name]
    found = findings(tmp_path, "", RULES[rules], Fuse=f"{REST}{source}\n", shapes=shapes)
    assert not found, found


@pytest.mark.parametrize("name", USED)
def test_code_that_replacements_use_too_is_no_pattern(name: str, tmp_path: Path) -> None:
    source, shapes = USED[name]
    found = kinds(findings(tmp_path, "", STRICT, Fuse=f"{REST}{source}\n", shapes=shapes))
    assert found >= OP, found


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    ("folders", "is_honest"), [("pass_folders", True), ("attacks/unseen_by_inspection", False)]
)
def test_shared_folders_are_told_apart(folders: str, is_honest: bool, rules: str) -> None:
    if not (CORPUS / folders).is_dir():
        pytest.skip("the shared folders are not here")
    for listed in sorted((CORPUS / folders).glob(f"*/{LIST_FILE}")):
        found = inspect_code(inspect_folder(listed.parent), RULES[rules])
        assert (not [item for item in found if item.weight != "note"]) == is_honest, listed
