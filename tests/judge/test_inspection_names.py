"""The text's knowledge of a name exempts it, and its abuse is still found."""

from pathlib import Path

import pytest

from passnet.errors import PassFolderError
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
FIND = """
def find(name):
    return getattr(torch, name)
"""
NAMED = """
class Types:
    def __init__(self):
        self.seen = "float32"
    def note(self, x):
        return getattr(torch, self.seen)
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
    "a type by the name in an object": f"{NAMED}TYPE = Types().note(1)\n",
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
    "a product of arrays": ("def f(x, y):\n    x.numpy() @ y.numpy() @ y.numpy()\n", METHOD),
    "a name, and then another": (
        "def f(x):\n    a = b = c = 'float32'\n    for _ in range(4):\n"
        "        getattr(torch, a)\n        a = b\n        b = c\n        c = x\n",
        EVASION,
    ),
    "a name, and another from outside": (
        f"{ME}a = 'float32'\ndef f(x):\n    me.a = x\n    getattr(torch, a)\n",
        EVASION,
    ),
    "a loop's name in its source": (
        "def f(a):\n    [1 for _ in getattr(torch, a) for a in ('int8',)]\n",
        EVASION,
    ),
    "a loop's name in its first source": (
        "def f(b):\n    [getattr(torch, a) for a in b for b in (('int8',),)]\n",
        EVASION,
    ),
    "what a generator gives": (
        "def g(x):\n    yield x\n    return 'int8'\n"
        "def f(x):\n    for t in g(x):\n        getattr(torch, t)\n",
        EVASION,
    ),
    "an annotation": ("def f(name: 'Name'):\n    getattr(torch, name)\n", EVASION),
    "another name in one call": (
        FIND + "def f(x):\n    find('float32')\n    find(x)\n",
        EVASION,
    ),
    "another name by keyword": (
        FIND + "def f(x):\n    find('float32')\n    find(name=x)\n",
        EVASION,
    ),
    "another name among many": (
        FIND + "def f(*x):\n    find('float32')\n    find(*x)\n",
        EVASION,
    ),
    "a function handed on": (
        FIND + "def f(x):\n    find('float32')\n    list(map(find, x))\n",
        EVASION,
    ),
    "a function by another name": (
        FIND + "go = find\ndef f(x):\n    find('float32')\n    go(x)\n",
        EVASION,
    ),
    "a function of its module": (
        FIND + "import pass_dir.Fuse as me\ndef f(x):\n    find('float32')\n    me.find(x)\n",
        EVASION,
    ),
    "a function by getattr": (
        FIND + f"{ME}g = getattr(me, 'find')\nfind('float32')\ndef f(x):\n    g(x)\n",
        EVASION,
    ),
    "a function under an alias": (
        FIND + "from pass_dir.Fuse import find as go\nfind('float32')\ndef f(x):\n    go(x)\n",
        EVASION,
    ),
    "a function defined twice": (FIND + FIND + "find('float32')\n", EVASION),
    "another name among keywords": (
        FIND + "def f(x):\n    find('float32')\n    find(**x)\n",
        EVASION,
    ),
    "a function of some module": (
        FIND + f"{ME}def f(x):\n    find('float32')\n    g(me).find(x)\n",
        EVASION,
    ),
    "a function of some module by getattr": (
        FIND + f"{ME}def f(x):\n    find('float32')\n    getattr(g(me), 'find')(x)\n",
        EVASION,
    ),
    "an alias handed on": (
        FIND + "from pass_dir.Fuse import find as go\nfind('float32')\nmap(go, f())\n",
        EVASION,
    ),
    "a function with a decorator": (f"import f\n@f.g{FIND}find('float32')\n", EVASION),
    "another name in the object": (NAMED + "def f(x):\n    Types().seen = x\n", EVASION),
    "another name in the object, by setattr": (
        NAMED + "def f(x):\n    setattr(Types(), 'seen', x)\n",
        EVASION,
    ),
    "another name in the object's dict": (
        NAMED + "def f(x):\n    Types().__dict__['se' + 'en'] = x\n",
        EVASION,
    ),
    "another name in the class": (NAMED + "    seen = None\n", EVASION),
    "a method of another object": (NAMED + "def f(x):\n    Types.note(slice(x), x)\n", EVASION),
    "a method by type": (NAMED + "def f(x):\n    type(Types()).note(slice(x), x)\n", EVASION),
    "a method by its function": (
        NAMED + "def f(x):\n    Types().note.__func__(slice(x), x)\n",
        EVASION,
    ),
    "another name in the object, by a loop": (
        NAMED + "def f(x):\n    for Types().seen in x:\n        pass\n",
        EVASION,
    ),
    "a method of no object": (
        NAMED.replace("    def note", "    @staticmethod\n    def note")
        + "def f(x):\n    Types().note(slice(x), x)\n",
        EVASION,
    ),
    "a method under another name": (NAMED + "    go = staticmethod(note)\n", EVASION),
    "an object with a base": (
        f"import f\n{NAMED}".replace("Types:", "Types(f.Base):"),
        EVASION,
    ),
    "an object with a subclass": (f"import f\n{NAMED}class K(Types, f.Base): pass\n", EVASION),
    "another self": (
        NAMED + "    def more(self, x):\n        self = x\n        getattr(torch, self.seen)\n",
        EVASION,
    ),
    "a module kept": (
        "class K:\n    def go(self, x):\n        self.f = torch\n        self.f.relu(x)\n",
        OP,
    ),
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
    source = "def replacement_args(x, y):\n    return find(x), y\n"
    whole = PASS.replace("def replacement_args(x, y):\n    return x, y\n", source + FIND)
    whole += "replacement_args('float32', 2)\n"
    found = kinds(findings(tmp_path, "", STRICT, Fuse=whole))
    assert found == EVASION | PATTERN


def test_names_in_a_long_chain_are_one_clear_error(tmp_path: Path) -> None:
    names = [f"a{i}" for i in range(60)]
    steps = [f"{name} = {after}\n" for name, after in zip(names, [*names[1:], "f"], strict=True)]
    with pytest.raises(PassFolderError, match="stand for each other in too many steps"):
        findings(tmp_path, f"{' = '.join(names)} = 1\n{''.join(steps)}", STRICT)
