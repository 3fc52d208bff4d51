"""The text's knowledge of a name exempts it, and its abuse is still found."""

from pathlib import Path

import numpy as np
import pytest
import torch

from passnet.errors import PassFolderError
from passnet.judge.inspection import rules as meaning
from passnet.judge.inspection.rules import RULES, STRICT
from tests.judge.inspection_folder import (
    COMPARISON,
    EVASION,
    LIBRARY,
    METHOD,
    OP,
    PASS,
    PATTERN,
    PERSISTENCE,
    body,
    findings,
    kinds,
)

GUARD = 'if __name__ == "__main__":\n    torch.relu(pattern(1, 2))\n'
ME = "import pass_dir.Fuse as me\n"
NUMPY = "import numpy as np\n"
KEY = """
    def __init__(self, x):
        self.shape = x.shape
    def __eq__(self, other):
        return self.shape == other.shape
    def __hash__(self):
        return hash(self.shape)
"""
COUNTER = """
class Counter:
    def __init__(self):
        self.seen = set()
    def note(self, x):
        self.seen.add(x)
"""
CENTRED = """
def centred(rows):
    rows -= rows.mean(axis=-1)
    return rows
"""
TYPES = "KERNELS = {getattr(torch, name): name for name in NAMES}\n"

HONEST = {
    "the processor asked for": body(
        "torch.backends.cpu.get_cpu_capability(), torch.backends.mkldnn.is_available()"
    ),
    "a self-test": f'"""Tested below `if __name__ == ...`."""\n{GUARD}',
    "a logger of the module's name": f"import logging\nLOG = logging.getLogger(__name__)\n{GUARD}",
    "numbers of numpy": """
import math
import numpy as np
def fused(x, y, scale):
    a = x.numpy() - y.numpy()
    assert (a**2 / len(a)).mean(axis=-1)[0].min() >= 0 and (-a).max() and (a > 0).any()
    for row in np.exp(a / math.sqrt(scale)):
        row /= row.sum()
    table = np.empty((4, *x.shape), np.float32) + np.asarray(scale, dtype="float32")
    table += a.reshape(x.shape, -1).astype(np.float32)
    return torch.as_tensor(np.stack([a.T, table]).sum(0)), [row.sum() for row in table]
""",
    "a function of arrays": CENTRED
    + body("centred(x.numpy()) + centred(rows=a).sum() * 2", "import numpy as np\na = np.ones(3)"),
    "a function of arrays, below": NUMPY
    + "def fused(x):\n    return centred(x.numpy()).sum()\n"
    + CENTRED,
    "a set in an object": COUNTER + "COUNTER = Counter()\ndef fused(x):\n    COUNTER.note(x)\n",
    "an array in an object": """
class Table:
    def __init__(self, x):
        self.rows, self.calls = x.numpy() * 2, 0
    def __call__(self, x):
        self.calls = self.calls + 1
        return self.rows.sum()
def fused(x):
    return Table(x)(x)
""",
    "sets by key": """
from collections import defaultdict
SEEN = defaultdict(set)
def fused(x):
    SEEN[x.dtype].add(tuple(x.shape))
    SEEN[x.dtype].add((x.shape, "a b"))
""",
    "a log by level": """
import logging
LOGGER = logging.getLogger("a")
def fused(x, level):
    LOGGER.log(level, "%s", x.shape)
    LOGGER.log(level=level, msg="a")
""",
    "decimals": "from decimal import Decimal\nTWO = Decimal(4).sqrt()\nMORE = TWO.exp()\n",
    "a key": f"class Key:{KEY}",
    "a key of a dataclass": f"""
import dataclasses, enum
class Base: pass
@dataclasses.dataclass(frozen=True)
class Key(Base):{KEY}
class Kind(enum.Enum):{KEY}
""",
    "types by name": f'NAMES = ("float32", "bfloat16")\n{TYPES}',
    "types by name in a list": f'NAMES = ["float32", "bfloat16"]\n{TYPES}',
    "types by name of a dict": """
NAMES = {"f": "float32", "h": "float16"}
A = {getattr(torch, name): key for key, name in NAMES.items()}
def fused(x, key):
    for name, more in (("int8", 1), ("uint8", 2)):
        getattr(torch, name)
    return getattr(torch, NAMES[key])
""",
    "types by name of a parameter": """
def find(name):
    return getattr(torch, name)
TYPES = [find("float32"), find(name="float64")]
""",
    "errors of kernels": """
from passnet.errors import PassError
import passnet.errors as e
try:
    pass
except (PassError, e.InputError) as cause:
    print(cause)
""",
    "a global function": "def outer():\n    global inner\n    def inner(x):\n        return x\n",
    "names that are like code": 'TABLE = {"x().y": 1, "()": 1e999}\nprint(TABLE.items())\n',
    "a switch": 'import os\nos.environ["TRITON_INTERPRET"] = "1"\n',
}
"""No finding under either rules."""

ABUSED = {
    "threads set": (body("torch.set_num_threads(4)"), OP),
    "flags of a backend": (body("torch.backends.mkldnn.flags(False)"), OP),
    "a self-test's else": ('if __name__ == "__main__":\n    pass\nelse:\n    torch.eye(3)\n', OP),
    "a self-test within": (
        'def fused(x):\n    if __name__ == "__main__":\n        torch.eye(x)\n',
        OP,
    ),
    "another name": (f'__name__ = "__main__"\n{GUARD}', OP),
    "another name, global": (f'def f():\n    global __name__\n    __name__ = "a"\n{GUARD}', OP),
    "another name, deleted": (f"del __name__\n{GUARD}", OP),
    "another name by :=": (f'(__name__ := "__main__")\n{GUARD}', OP),
    "another name by import": (f"from pass_dir.kernel import a as __name__\n{GUARD}", OP),
    "another name by star": (f"from pass_dir.kernel import *\n{GUARD}", OP),
    "another name by a loop": (f'for __name__ in ("__main__",):\n    pass\n{GUARD}', OP),
    "another name by def": (f"def __name__():\n    pass\n{GUARD}", OP),
    "another name from outside": (f"import pass_dir.Fuse as me\nme.__name__ = 'a'\n{GUARD}", OP),
    "another name, computed": (
        "import pass_dir.Fuse as me\nk = '__na' + 'me__'\nsetattr(me, k, 1)\n",
        EVASION,
    ),
    "another name in a dict": (
        "import pass_dir.Fuse as me\nme.__dict__['__na' + 'me__'] = 1\n",
        EVASION,
    ),
    "a number times what is none": (f"{NUMPY}def f(x):\n    (np.ones(3) * x).sum()\n", METHOD),
    "a product of arrays": ("def f(x, y):\n    x.numpy() @ y.numpy() @ y.numpy()\n", METHOD),
    "an array of objects": (
        f"{NUMPY}def f(x):\n    a = np.empty(1, object)\n    a[0] = x\n    a[0].sum()\n",
        METHOD,
    ),
    "an array of objects, spread": (
        f"{NUMPY}def f(x):\n    a = np.empty(1, **{{'dtype': object}})\n    a[0].sum()\n",
        METHOD,
    ),
    "an array of objects, starred": (
        f"{NUMPY}def f(x):\n    a = np.empty(*[1, object])\n    a[0].sum()\n",
        METHOD,
    ),
    "an array of objects by astype": (
        f"{NUMPY}def f(x):\n    a = x.numpy().astype('O')\n    a[0].sum()\n",
        METHOD,
    ),
    "an array of None": (f"{NUMPY}def f(x):\n    a = np.array([None])\n    a[0].sum()\n", METHOD),
    "an array of functions": (f"{NUMPY}a = np.array([np.sum])\na[0].sum()\n", METHOD),
    "an object from numpy": (f"{NUMPY}np.geterrcall()[0].sum()\n", METHOD),
    "a ufunc of tensors": (f"{NUMPY}def f(x):\n    (np.sqrt(x) * 2).sum()\n", METHOD),
    "a method given a tensor": ("def f(x, y):\n    (x.numpy().clip(y, 1) + 1).sum()\n", METHOD),
    "whose memory an array is": ("def f(x):\n    x.numpy().base.sum()\n", METHOD),
    "a method called numpy": (
        "class K:\n    def numpy(self):\n        return self.x\ndef f(x):\n    x.numpy().sum()\n",
        METHOD,
    ),
    "an array, and then a tensor": (
        f"{NUMPY}def f(x):\n    a = b = c = np.ones(3)\n    for _ in range(4):\n"
        "        a.sum()\n        a = b\n        b = c\n        c = x\n",
        METHOD,
    ),
    "an array, and a tensor from outside": (
        f"{NUMPY}{ME}a = np.ones(3)\ndef f(x):\n    me.a = x\n    a.sum()\n",
        METHOD,
    ),
    "a loop's name in its source": (
        f"{NUMPY}def f(a):\n    [1 for _ in a.sum() for a in (np.ones(1),)]\n",
        METHOD,
    ),
    "a loop's name in its first source": (
        f"{NUMPY}def f(b):\n    [a.sum() for a in b for b in (np.ones((1, 1)),)]\n",
        METHOD,
    ),
    "what a generator gives": (
        f"{NUMPY}def g(x):\n    yield x\n    return np.ones(3)\n"
        "def f(x):\n    for t in g(x):\n        t.sum()\n",
        METHOD,
    ),
    "an annotation": ("def f(rows: 'np.ndarray'):\n    rows.sum()\n", METHOD),
    "a tensor in one call": (
        CENTRED + "def f(x):\n    centred(x.numpy())\n    centred(x)\n",
        METHOD,
    ),
    "a tensor by name": (
        CENTRED + "def f(x):\n    centred(x.numpy())\n    centred(rows=x)\n",
        METHOD,
    ),
    "a tensor among many": (
        CENTRED + "def f(*x):\n    centred(x[0].numpy())\n    centred(*x)\n",
        METHOD,
    ),
    "a function handed on": (
        CENTRED + "def f(x):\n    centred(x.numpy())\n    list(map(centred, x))\n",
        METHOD,
    ),
    "a function by another name": (
        CENTRED + "go = centred\ndef f(x):\n    centred(x.numpy())\n    go(x)\n",
        METHOD,
    ),
    "a function of its module": (
        CENTRED
        + "import pass_dir.Fuse as me\ndef f(x):\n    centred(x.numpy())\n    me.centred(x)\n",
        METHOD,
    ),
    "a function by getattr": (
        CENTRED + f"{ME}g = getattr(me, 'centred')\ncentred(1)\ndef f(x):\n    g(x)\n",
        METHOD,
    ),
    "a function under an alias": (
        CENTRED + "from pass_dir.Fuse import centred as go\ncentred(1)\ndef f(x):\n    go(x)\n",
        METHOD,
    ),
    "a function defined twice": (CENTRED + CENTRED + "centred(1)\n", METHOD),
    "a tensor among keywords": (CENTRED + "def f(x):\n    centred(1)\n    centred(**x)\n", METHOD),
    "a function of some module": (
        CENTRED + f"{ME}def f(x):\n    centred(1)\n    g(me).centred(x)\n",
        METHOD,
    ),
    "a function of some module by getattr": (
        CENTRED + f"{ME}def f(x):\n    centred(1)\n    getattr(g(me), 'centred')(x)\n",
        METHOD,
    ),
    "an alias handed on": (
        CENTRED + "from pass_dir.Fuse import centred as go\ncentred(1)\nmap(go, f())\n",
        METHOD,
    ),
    "a function with a decorator": (f"import f\n@f.g{CENTRED}centred(1)\n", METHOD),
    "a tensor in the object": (COUNTER + "def f(x):\n    Counter().seen = x\n", METHOD),
    "a tensor in the object, by setattr": (
        COUNTER + "def f(x):\n    setattr(Counter(), 'seen', x)\n",
        METHOD,
    ),
    "a tensor in the object's dict": (
        COUNTER + "def f(x):\n    Counter().__dict__['se' + 'en'] = x\n",
        METHOD,
    ),
    "a tensor in the class": (COUNTER + "    seen = None\n", METHOD),
    "a method of another object": (COUNTER + "def f(x):\n    Counter.note(slice(x), x)\n", METHOD),
    "a method by type": (COUNTER + "def f(x):\n    type(Counter()).note(slice(x), x)\n", METHOD),
    "a method by its function": (
        COUNTER + "def f(x):\n    Counter().note.__func__(slice(x), x)\n",
        METHOD,
    ),
    "a tensor in the object, by a loop": (
        COUNTER + "def f(x):\n    for Counter().seen in x:\n        pass\n",
        METHOD,
    ),
    "a method of no object": (
        COUNTER.replace("    def note", "    @staticmethod\n    def note")
        + "def f(x):\n    Counter().note(slice(x), x)\n",
        METHOD,
    ),
    "a method under another name": (COUNTER + "    go = staticmethod(note)\n", METHOD),
    "an object with a base": (
        f"import f\n{COUNTER}".replace("Counter:", "Counter(f.Base):"),
        METHOD,
    ),
    "an object with a subclass": (f"import f\n{COUNTER}class K(Counter, f.Base): pass\n", METHOD),
    "another self": (
        COUNTER + "    def more(self, x):\n        self = x\n        self.seen.add(1)\n",
        METHOD,
    ),
    "a method kept": (
        "class K:\n    def go(self, x):\n        self.f = x.mm\n        self.f(x)\n",
        METHOD,
    ),
    "a module kept": (
        "class K:\n    def go(self, x):\n        self.f = torch\n        self.f.relu(x)\n",
        OP,
    ),
    "a tensor added": ("def f(x, y):\n    x.add(y)\n", METHOD),
    "a number added": ("def f(x):\n    x.add(1)\n", METHOD),
    "what may be text added": ("def f(x, y):\n    x.add('a' if y else y)\n", METHOD),
    "a logarithm by map": ("def f(x, y):\n    map(x.log, y)\n", METHOD),
    "a logarithm": ("def f(x):\n    x.log()\n", METHOD),
    "a logarithm, of nothing": ("def f(x):\n    x.log(*[])\n    x.log(**{})\n", METHOD),
    "a key that is a tensor": (f"class Key(torch.Tensor):{KEY}", COMPARISON),
    "a key of unknown base": (f"import f\nclass Key(f.Base):{KEY}", COMPARISON),
    "a key of a base of unknown base": (
        f"import f\nclass Base(f.Base): pass\nclass Key(Base):{KEY}",
        COMPARISON,
    ),
    "a key of a base that is given": (
        f"class B:\n    def __mro_entries__(self, _): pass\nclass Key(B()):{KEY}",
        COMPARISON,
    ),
    "a key of unknown metaclass": (f"import f\nclass Key(metaclass=f.Meta):{KEY}", COMPARISON),
    "a key with a decorator": (f"import f\n@f.swap\nclass Key:{KEY}", COMPARISON),
    "a key that dispatches": (
        f"class Key:{KEY}    def __torch_function__(self): pass\n",
        COMPARISON,
    ),
    "a key mixed in by type": (
        f"class Key:{KEY}\nBad = type('Bad', (Key, torch.Tensor), {{}})\n",
        COMPARISON,
    ),
    "an op among names": (f'NAMES = ("float32", "matmul")\n{TYPES}', OP),
    "an op added to names": (f'NAMES = ["float32"]\nNAMES.append("mat" + "mul")\n{TYPES}', EVASION),
    "an op added to names by another": (
        f'NAMES = ["float32"]\nmore = NAMES\nmore.append("mat" + "mul")\n{TYPES}',
        EVASION,
    ),
    "an op put among names": (f'NAMES = ["float32"]\nNAMES[0] = "mat" + "mul"\n{TYPES}', EVASION),
    "an op put among names of tuples": (
        'ALL = (["float32"],)\nALL[0][0] = "mat" + "mul"\n'
        "for names in ALL:\n    for name in names:\n        getattr(torch, name)\n",
        EVASION,
    ),
    "other names": (f'NAMES = ("float32",)\nNAMES = tuple(f())\n{TYPES}', EVASION),
    "names of two kinds": (f'NAMES = ("float32",)\nNAMES = ("float64",)\n{TYPES}', EVASION),
    "other names by +=": (f'NAMES = ("float32",)\nNAMES += ("mat" + "mul",)\n{TYPES}', EVASION),
    "other names by :=": (f'NAMES = ("float32",)\n(NAMES := tuple(f()))\n{TYPES}', EVASION),
    "names by := and more": (f'(NAMES := ["float32"]).append("mat" + "mul")\n{TYPES}', EVASION),
    "names under two names": (
        f'NAMES = MORE = ["float32"]\nMORE.append("mat" + "mul")\n{TYPES}',
        EVASION,
    ),
    "names from outside": (
        f'import pass_dir.Fuse as me\nNAMES = ("float32",)\nme.NAMES = f()\n{TYPES}',
        EVASION,
    ),
    "a pasted name among names": (f'NAMES = ("float32", "mat" + "mul")\n{TYPES}', EVASION),
    "a name of a loop changed": (
        'for name in ("float32",):\n    name = f()\n    getattr(torch, name)\n',
        EVASION,
    ),
    "an op by a parameter": (
        "def find(name):\n    return getattr(torch, name)\nfind('matmul')(1)\n",
        OP,
    ),
    "a method by a loop": (
        "def f(x):\n    for name in ('matmul', 'mm'):\n        getattr(x, name)(x)\n",
        METHOD,
    ),
    "our errors' neighbours": ("import passnet.errors\npassnet.judge.worker\n", EVASION),
    "our errors changed": ("import passnet.errors as e\ne.boundary = 1\n", LIBRARY),
    "another switch": ('import os\nos.environ["LD_PRELOAD"] = "a"\n', PERSISTENCE),
    "a switch elsewhere": ('torch.eye(3)["TRITON_INTERPRET"] = "1"\n', OP),
    "a switch of some name": ('import os\nos.environ[k] = "1"\n', PERSISTENCE),
    "an answer in a switch": ('import os\nos.environ["TRITON_INTERPRET"] = str(x)\n', PERSISTENCE),
}
"""What is made of an exemption -> what is found under STRICT."""


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", HONEST)
def test_what_text_tells_is_no_finding(name: str, rules: str, tmp_path: Path) -> None:
    assert findings(tmp_path, HONEST[name], RULES[rules]) == []


@pytest.mark.parametrize("name", ABUSED)
def test_an_exemption_cannot_be_abused(name: str, tmp_path: Path) -> None:
    source, expected = ABUSED[name]
    found = kinds(findings(tmp_path, source, STRICT, kernel="a = 1\n"))
    assert found >= expected
    assert found <= expected | OP | PATTERN


def test_what_we_call_is_given_what_its_own_code_does_not_show(tmp_path: Path) -> None:
    source = "def replacement_args(x, y):\n    return centred(x), y\n"
    whole = PASS.replace("def replacement_args(x, y):\n    return x, y\n", source + CENTRED)
    whole += "replacement_args(1, 2)\n"
    found = kinds(findings(tmp_path, "", STRICT, Fuse=whole))
    assert found == METHOD | PATTERN


def test_names_in_a_long_chain_are_one_clear_error(tmp_path: Path) -> None:
    names = [f"a{i}" for i in range(60)]
    steps = [f"{name} = {after}\n" for name, after in zip(names, [*names[1:], "f"], strict=True)]
    with pytest.raises(PassFolderError, match="stand for each other in too many steps"):
        findings(tmp_path, f"{' = '.join(names)} = 1\n{''.join(steps)}", STRICT)


@pytest.mark.parametrize("method", sorted(meaning.NO_OPERANDS))
@pytest.mark.parametrize("given", [1, "a", torch.ones(3)], ids=["number", "text", "tensor"])
def test_a_tensor_refuses_operands_that_are_taken_to_show_that_there_is_none(
    method: str, given: object
) -> None:
    with pytest.raises(TypeError):
        getattr(torch.ones(3), method)(given)


@pytest.mark.parametrize("method", sorted(meaning.NO_TEXT))
@pytest.mark.parametrize(
    "given", ["a", b"a", (), (1,), [1, 1, 1], {1}, frozenset([1]), {1: 1}], ids=repr
)
def test_a_tensor_refuses_text_and_containers(method: str, given: object) -> None:
    for more in ((), (1,), (torch.ones(3),)):
        with pytest.raises(TypeError):
            getattr(torch.ones(3), method)(given, *more)


def test_numpy_gives_tensors_where_it_is_not_given_numbers() -> None:
    x = torch.ones(3)
    assert isinstance(x.numpy().base, torch.Tensor)
    assert isinstance(np.add(np.ones(3), x), torch.Tensor)
