"""Styles of published pass folders that are honest, and what hides behind each of them."""

import json
from pathlib import Path

import pytest

from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import RULES, STRICT
from passnet.passes.folder import inspect_folder
from tests.judge.inspection_folder import (
    EVASION,
    HARNESS,
    INTROSPECTION,
    OP,
    PASS,
    PATTERN,
    THREAD,
    body,
    findings,
    kinds,
)

BODY = PASS.replace("def pattern(x, y):\n    return torch.relu(x @ y).softmax(-1)\n", "")
HERE = "import os, sys\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
BUILT = """
def _build():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.relu, (x,)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)
pattern = _build()
"""
INLINE = """
import torch.nn.functional as F
from torch.fx import Graph
graph = Graph()
x = graph.placeholder("x")
y = graph.placeholder("y")
total = graph.call_function(torch.add, (x, y))
result = graph.call_function(F.gelu, (total,), {"approximate": "none"})
graph.output((result,))
graph.lint()
pattern = torch.fx.GraphModule({}, graph)
"""
TRACED_MODULE = """
class Block(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
pattern = torch.fx.symbolic_trace(Block())
"""
BY_FILE = """
import importlib.util, os, sys
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel.py")
SPEC = importlib.util.spec_from_file_location("kernel", FILE)
kernel = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kernel)
"""
BY_NAME = """
import importlib, sys
NAME = __name__.rsplit(".", 1)[0] + ".kernel"
kernel = sys.modules.get(NAME) or importlib.import_module(NAME)
"""
KERNEL = "def run(x):\n    return x\n"
SPEC = (
    HERE
    + """
import importlib.util
def load():
    if "_shared_kernel" not in sys.modules:
        spec = importlib.util.spec_from_file_location("k", os.path.join(HERE, "kernel.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules["_shared_kernel"] = module
        spec.loader.exec_module(module)
    return sys.modules["_shared_kernel"]
def fused(x, y):
    return load().run(x)
"""
)

HONEST = {
    "a pattern that builds a graph": BODY + BUILT,
    "a pattern from a graph that is built at the top": BODY + INLINE,
    "a pattern traced from a module": BODY + TRACED_MODULE,
    "a pattern that calls itself": PASS.replace("def pattern(x, y)", "def pattern()")
    + "pattern = pattern()\n",
    "a helper of patterns": BODY
    + "def helper(x):\n    return torch.relu(x).sum()\ndef pattern(x):\n    return helper(x)\n",
    "a helper of patterns in one line": BODY
    + "act = lambda x: torch.relu(x)\ndef pattern(x):\n    return act(x)\n",
    "helpers of helpers": BODY
    + "def a(x):\n    return b(x).exp()\ndef b(x):\n    return torch.sin(x)\n"
    + "def pattern(x):\n    return a(x)\n",
    "a module that patterns use": BODY
    + "import torch.nn.functional as F\nG = torch.nn.functional\n"
    + "def pattern(x):\n    return F.gelu(G.relu(x))\n",
    "constants": PASS + "from torch import inf, nan\nLIMIT = -inf + torch.pi\n",
    "an unused import": PASS + "import torch.nn as nn\nfrom torch.nn import functional as F\n",
    "identity": PASS + "def fused(x, route):\n    return x if route is torch.relu else x.t()\n",
    "equality": PASS
    + "class Route:\n    pass\n"
    + body("x if route == torch.relu or torch.abs != route else x.t()", parameters="x, route"),
    "movement": PASS
    + body("torch.functional.split(torch.reshape(torch.transpose(x, 0, 1), (-1,)), 2)"),
    "its own folder": PASS + HERE + "if HERE not in sys.path:\n    sys.path.insert(0, HERE)\n"
    "import kernel\ndef fused(x, y):\n    return kernel.run(x)\n",
    "its own folder by pathlib": PASS + "import sys\nfrom pathlib import Path\n"
    "sys.path.append(str(Path(__file__).resolve().parent))\nfrom kernel import run\n",
    "a folder in its folder": PASS + HERE + "sys.path.insert(0, os.path.join(HERE, 'inner'))\n"
    "from deep import run as go\n",
    "a module by its file": PASS + SPEC,
    "a module by its file, which has a name": PASS + BY_FILE + body("kernel.run(x)"),
    "a module by its file, by pathlib": PASS
    + BY_FILE.replace(
        "os.path.join(os.path.dirname(os.path.abspath(__file__)), ", "Path(__file__).with_name("
    ).replace("import importlib", "from pathlib import Path\nimport importlib")
    + body("kernel.run(x)"),
    "a module by its file, which is a keyword": PASS
    + BY_FILE.replace('"kernel", FILE', '"kernel", location=FILE')
    + body("kernel.run(x)"),
    "a module by its file, all by keywords": PASS
    + BY_FILE.replace('"kernel", FILE', 'location=FILE, name="kernel"')
    + body("kernel.run(x)"),
    "a module by a name that has a name": PASS + BY_NAME + body("kernel.run(x)"),
    "a module by its name": PASS
    + "import importlib\nkernel = importlib.import_module('pass_dir.kernel')\n"
    + body("kernel.run(x)"),
    "a module by a relative name": PASS
    + "from importlib import import_module\nkernel = import_module('.kernel', __package__)\n"
    + body("kernel.run(x)"),
    "a module by a relative name, from its package": PASS
    + "from importlib import import_module\n"
    + "kernel = import_module('.kernel', package=__package__)\n"
    + body("kernel.run(x)"),
    "itself": PASS + "import sys\nTHIS = sys.modules[__name__]\n" + body("THIS.KEPT"),
    "another pass, if it is loaded": PASS
    + "import sys\nif 'pass_dir.kernel' in sys.modules:\n"
    + "    KERNEL = sys.modules['pass_dir.kernel']\n",
    "memory of a thread": PASS
    + "import threading\nKEPT, LOCK = threading.local(), threading.Lock()\n"
    + "from threading import local\n",
}
"""No finding under either rules."""

HIDDEN = {
    "a graph that a replacement runs": (BODY + BUILT + body("_build()(x)"), OP),
    "a graph at the top that is read": (
        BODY + INLINE + body("list(graph.nodes)[2].target(x, y)"),
        OP,
    ),
    "a node at the top that is read": (BODY + INLINE + "f = total.target\n" + body("f(x, y)"), OP),
    "a node at the top that is read elsewhere": (
        BODY + INLINE + "import pass_dir.Fuse as me\n" + body("me.total.target(x, y)"),
        OP,
    ),
    "a node at the top that is imported": (
        BODY + INLINE + "from pass_dir.Fuse import total as t\n" + body("t.target(x, y)"),
        OP,
    ),
    "a node at the top that is handed on": (BODY + INLINE + "graph.output(f(result))\n", OP),
    "a traced module that is run": (BODY + TRACED_MODULE + body("Block()(x)"), OP),
    "a module by a file elsewhere": (
        PASS + BY_FILE.replace("os.path.abspath(__file__)", "'/tmp/x/kernel.py'"),
        EVASION,
    ),
    "a module by one of two files": (
        PASS + BY_FILE.replace('"kernel.py")', '"kernel.py") if f() else "/tmp/kernel.py"'),
        EVASION,
    ),
    "a module by a file elsewhere, which is a keyword": (
        PASS
        + BY_FILE.replace("os.path.abspath(__file__)", "'/tmp/x/kernel.py'").replace(
            '"kernel", FILE', '"kernel", location=FILE'
        ),
        EVASION,
    ),
    "a module by a file of the folder in which Python runs": (
        PASS + BY_FILE.replace('"kernel", FILE', '"k", "kernel.py"'),
        EVASION,
    ),
    "a module by a name of another": (
        PASS + BY_NAME.replace('rsplit(".", 1)', 'split("_", 1)'),
        INTROSPECTION | EVASION,
    ),
    "a helper of both": (
        BODY
        + "def helper(x):\n    return torch.relu(x)\ndef pattern(x):\n    return helper(x)\n"
        + body("helper(x)"),
        OP,
    ),
    "a helper of both in one line": (
        BODY
        + "act = lambda x: torch.relu(x)\ndef pattern(x):\n    return act(x)\n"
        + body("act(x)"),
        OP,
    ),
    "a helper of both in one line, as an attribute": (
        BODY
        + "act = f.act = lambda x: torch.relu(x)\ndef pattern(x):\n    return act(x)\n"
        + body("f.act(x)"),
        OP,
    ),
    "a helper of both in one line, in a list": (
        BODY
        + "kept = [act := lambda x: torch.relu(x)]\ndef pattern(x):\n    return act(x)\n"
        + body("kept[0](x)"),
        OP,
    ),
    "a helper with a default": (
        BODY + "act = lambda x, f=torch.relu: f(x)\ndef pattern(x):\n    return act(x)\n",
        OP,
    ),
    "a helper that the harness takes": (
        BODY.replace("def replacement_func():\n    return fused\n", "")
        + "def act():\n    return torch.relu\ndef pattern(x):\n    return act()(x)\n"
        + "from pass_dir.Fuse import act as replacement_func\n",
        OP,
    ),
    "a helper that Python takes": (
        BODY
        + "import pass_dir.Fuse as me\ndef act(name):\n    return torch.relu\n"
        + "from pass_dir.Fuse import act as __getattr__\n"
        + "def pattern(x):\n    return act('a')(x)\n"
        + body("me.anything(x)"),
        OP,
    ),
    "a helper in a class": (
        BODY
        + "def act(x):\n    return torch.relu(x)\ndef pattern(x):\n    return act(x)\n"
        + "class Own:\n    from pass_dir.Fuse import act\n"
        + body("Own.act(x)"),
        OP,
    ),
    "a helper of both, of all that a module has": (
        BODY
        + "import inspect, pass_dir.Fuse as me\ndef act(x):\n    return torch.relu(x)\n"
        + "def pattern(x):\n    return act(x)\n"
        + body("inspect.getmembers(me)[0][1](x)"),
        INTROSPECTION,
    ),
    "a helper of both, by name": (
        BODY
        + "import pass_dir.Fuse as me\ndef helper(x):\n    return torch.relu(x)\n"
        + "def pattern(x):\n    return helper(x)\n"
        + body("getattr(me, 'helper')(x)"),
        OP,
    ),
    "a helper that keeps": (
        BODY
        + "def helper(x):\n    global kept\n    kept = torch.relu\n    return x\n"
        + "def pattern(x):\n    return helper(x)\n",
        EVASION,
    ),
    "a helper of the arguments": (
        PASS.replace("return x, y", "return helper(x), y")
        + "def helper(x):\n    return torch.relu(x)\n",
        OP,
    ),
    "torch in the arguments": (PASS.replace("return x, y", "return torch.relu(x), y"), OP),
    "a pattern that is called": (BODY + BUILT + body("pattern(x)"), PATTERN),
    "an import that is used": (PASS + "from torch import relu\n" + body("relu(x)"), OP),
    "another name that is used": (PASS + "run = torch.relu\n" + body("run(x)"), OP),
    "a key of a table": (PASS + body("{torch.relu: 1}[route]", parameters="x, route"), OP),
    "equality that remembers": (
        PASS
        + "class Key:\n    def __hash__(self):\n        return 1\n"
        + "    def __eq__(self, other):\n        kept.append(other)\n"
        + body("(Key() == torch.relu, kept[0](x))"),
        OP,
    ),
    "equality of an array that remembers": (
        PASS
        + "import numpy\nclass Array(numpy.ndarray):\n"
        + "    def __array_ufunc__(self, *given):\n        kept.append(given)\n"
        + body("(torch.relu == numpy.zeros(1).view(Array), kept[0][3](x))"),
        OP,
    ),
    "equality that is set": (
        PASS + "class Key:\n    pass\nKey.__eq__ = f\n" + body("Key() != torch.relu"),
        OP,
    ),
    "equality of what traces": (
        PASS.replace("return x, y", "return (x == torch.relu).node.args[1], y"),
        OP,
    ),
    "a function that is named in a question": (
        PASS + body("x if y == (f := torch.relu) else f(x)"),
        OP,
    ),
    "a folder above what holds it": (
        PASS + HERE + "sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))\n",
        EVASION,
    ),
    "a folder beside it": (
        PASS + HERE + "sys.path.insert(0, os.path.join(HERE, '..', 'other'))\n",
        EVASION,
    ),
    "a folder elsewhere": (
        PASS + HERE + "sys.path.insert(0, os.path.join(HERE, '/usr/lib'))\n",
        EVASION,
    ),
    "a folder of two names": (PASS + HERE + "HERE = f()\nsys.path.insert(0, HERE)\n", EVASION),
    "a path changed": (PASS + HERE + "sys.path[:] = [HERE]\n", EVASION),
    "another module": (PASS + "import sys\nsys.modules['os']\n", INTROSPECTION),
    "another module replaced": (PASS + "import sys\nsys.modules['time'] = f\n", INTROSPECTION),
    "a module of a computed name": (
        PASS + "import sys\nsys.modules['to' + 'rch']\n",
        INTROSPECTION,
    ),
    "a module by a computed name": (
        PASS + "import importlib as i\ni.import_module(name)\n",
        EVASION,
    ),
    "a library by its name": (PASS + "import importlib as i\ni.import_module('os')\n", EVASION),
    "its own names by text": (
        PASS + "import sys\nTHIS = sys.modules[__name__]\nsetattr(THIS, name, 1)\n",
        EVASION,
    ),
    "another thread": (PASS + "import threading as t\nt.Timer(1, f)\n", THREAD),
    "threading handed on": (PASS + "import threading\nf(threading)\n", THREAD),
    "who asks": (PASS + body("isinstance(x, torch.nn.Parameter)"), HARNESS),
}


def found_in(folder: Path, source: str, rules: str, kernel: str = KERNEL) -> set[tuple[str, str]]:
    (folder / "inner").mkdir()
    (folder / "inner" / "deep.py").write_text(kernel)
    return kinds(findings(folder, "", RULES[rules], Fuse=source, kernel=kernel))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_style_is_left_alone(name: str, rules: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, HONEST[name], rules) == set()


@pytest.mark.parametrize("name", HIDDEN)
def test_what_hides_behind_a_style_is_found(name: str, tmp_path: Path) -> None:
    source, expected = HIDDEN[name]
    assert found_in(tmp_path, source, "strict") == expected


IMPORTING = [name for name in HONEST if "folder" in name or "a module by" in name]


@pytest.mark.parametrize("name", IMPORTING)
def test_a_module_that_is_found_in_another_way_is_inspected(name: str, tmp_path: Path) -> None:
    kernel = "import torch\ndef run(x):\n    return torch.relu(x)\n"
    assert found_in(tmp_path, HONEST[name], "strict", kernel) == OP


@pytest.mark.parametrize("order", [["A", "B"], ["B", "A"]])
def test_the_order_of_passes_changes_nothing(order: list[str], tmp_path: Path) -> None:
    for name in order:
        (tmp_path / f"{name}.py").write_text(PASS + "def fused(x, y):\n    return x\n")
    (tmp_path / "A.py").write_text(PASS + "from pass_dir.B import fused\n")
    (tmp_path / "sorted_output_pass_rule_names.json").write_text(json.dumps(order))
    assert inspect_code(inspect_folder(tmp_path), STRICT) == []
