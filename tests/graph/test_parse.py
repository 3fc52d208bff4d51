"""What the text of a graph may hold, what it may not, and that none of it is executed."""

import math
import re
from pathlib import Path

import pytest

from passnet.errors import GraphError
from passnet.graph.spec import Alias, Device, Op, Param, Ref, Release, Sequence, Slice, TorchName
from passnet.graph.text.parse import parse_program
from passnet.graph.text.syntax import MAX_TEXT_BYTES
from tests.graph.programs import FIRST_LINE, program_of, text_of

A, B = Ref("a"), Ref("b")


def sequence(*values: object, kind: str = "tuple") -> Sequence:
    return Sequence(kind, values)  # type: ignore[arg-type]


ACCEPTED = {
    "x = torch.nn.functional.relu(a, inplace=False)": Op(
        "x", "torch.nn.functional.relu", (A,), (("inplace", False),)
    ),
    "x = torch._C._nn.gelu(input=a)": Op("x", "torch._C._nn.gelu", (), (("input", A),)),
    "x = torch.conv2d(a, b, None, (1, 1), [0, 0])": Op(
        "x", "torch.conv2d", (A, B, None, sequence(1, 1), sequence(0, 0, kind="list"))
    ),
    "x = torch.cat([a, (b,)], dim=-1)": Op(
        "x", "torch.cat", (sequence(A, sequence(B), kind="list"),), (("dim", -1),)
    ),
    "x = a.view(torch.Size([2, -1]))": Op("x", "Tensor.view", (A, sequence(2, -1, kind="size"))),
    "x = a.to(dtype=torch.bfloat16)": Op(
        "x", "Tensor.to", (A,), (("dtype", TorchName("bfloat16")),)
    ),
    "x = a.contiguous(memory_format=torch.channels_last)": Op(
        "x", "Tensor.contiguous", (A,), (("memory_format", TorchName("channels_last")),)
    ),
    "a.relu_()": Op(None, "Tensor.relu_", (A,)),
    "torch._C._set_grad_enabled(False)": Op(None, "torch._C._set_grad_enabled", (False,)),
    "x = operator.iadd(a, b)": Op("x", "operator.iadd", (A, B)),
    "x = a + 1": Op("x", "operator.add", (A, 1)),
    "x = 1e-05 - a": Op("x", "operator.sub", (1e-05, A)),
    "x = (-1) ** a": Op("x", "operator.pow", (-1, A)),
    "x = a // b": Op("x", "operator.floordiv", (A, B)),
    "x = a @ b": Op("x", "operator.matmul", (A, B)),
    "x = a & b": Op("x", "operator.and_", (A, B)),
    "x = a != b": Op("x", "operator.ne", (A, B)),
    "x = -a": Op("x", "operator.neg", (A,)),
    "x = ~a": Op("x", "operator.invert", (A,)),
    "x = not a": Op("x", "operator.not_", (A,)),
    "a += b": Op("a", "operator.iadd", (A, B)),
    "a |= True": Op("a", "operator.ior", (A, True)),
    "x = a[0]": Op("x", "operator.getitem", (A, 0)),
    "x = a[(..., None, b)]": Op("x", "operator.getitem", (A, sequence(..., None, B))),
    "x = a[1:, ::-2]": Op(
        "x", "operator.getitem", (A, sequence(Slice(1, None, None), Slice(None, None, -2)))
    ),
    "x = a[slice(None, b, None)]": Op("x", "operator.getitem", (A, Slice(None, B, None))),
    "x = a[slice(3)]": Op("x", "operator.getitem", (A, Slice(None, 3, None))),
    "x = a[Ellipsis]": Op("x", "operator.getitem", (A, ...)),
    "a[(slice(None, None, None), 0)] = b": Op(
        None, "operator.setitem", (A, sequence(Slice(), 0), B)
    ),
    "a[b] = -inf": Op(None, "operator.setitem", (A, B, -math.inf)),
    "x = a.shape": Op("x", "getattr", (A, "shape")),
    "x = getattr(a, 'dtype')": Op("x", "getattr", (A, "dtype")),
    "x = torch.zeros((), device=device(type='cuda', index=0))": Op(
        "x", "torch.zeros", (sequence(),), (("device", Device("cuda", 0)),)
    ),
    "x = torch.zeros(2, device=torch.device('cpu'))": Op(
        "x", "torch.zeros", (2,), (("device", Device("cpu")),)
    ),
    "x = a.to(device('cuda:1'), 'cuda:1')": Op("x", "Tensor.to", (A, Device("cuda", 1), "cuda:1")),
    "x = torch.full((2,), float('-inf'))": Op("x", "torch.full", (sequence(2), -math.inf)),
    "x = torch.full((2,), torch.inf)": Op("x", "torch.full", (sequence(2), math.inf)),
    "x = torch.full((2,), 1e999)": Op("x", "torch.full", (sequence(2), math.inf)),
    "x = torch.full((2,), nan)": Op("x", "torch.full", (sequence(2), math.nan)),
    "x = torch.add(a, -0x10, alpha=1_000)": Op("x", "torch.add", (A, -16), (("alpha", 1000),)),
    "x = torch.einsum('ij->ji', a)": Op("x", "torch.einsum", ("ij->ji", A)),
    "x = a": Alias("x", "a"),
    "a = a": Alias("a", "a"),
    "x = None": Release(("x",)),
    "a = b = None": Release(("a", "b")),
}


@pytest.mark.parametrize("line", ACCEPTED)
def test_a_construct_is_read_as(line: str):
    [statement] = program_of(line, returns="(1,)").body
    assert statement == ACCEPTED[line]
    assert statement.line == FIRST_LINE


def test_statements_may_share_a_line():
    body = program_of("x = a + b;  a = b = None; x += 1", returns="(x,)").body
    assert [type(statement) for statement in body] == [Op, Release, Op]
    assert {statement.line for statement in body} == {FIRST_LINE}


def test_a_released_name_may_be_bound_again():
    program = program_of("b = None", "b = torch.relu(a)", returns="(b,)")
    assert program.outputs == (Ref("b"),)


def test_docstrings_and_comments_are_no_statements():
    assert program_of('"""Text."""', "# comment", returns="(a,)").body == ()


def test_arguments_keep_their_annotations():
    program = program_of(params="a: torch.Tensor, b: torch.SymInt, c, d: 'x'", returns="()")
    annotations = ["torch.Tensor", "torch.SymInt", None, "'x'"]
    assert program.params == tuple(map(Param, "abcd", annotations))


def test_outputs_may_be_values_lists_and_literals():
    assert program_of(returns="(a, [a, b], 1, None)").outputs == (
        A,
        sequence(A, B, kind="list"),
        1,
        None,
    )
    assert program_of(returns="()").outputs == ()


REJECTED = {
    "a nested call": ("x = torch.relu(torch.tanh(a))", "torch.tanh(a)"),
    "a nested operator": ("x = torch.relu(a + b)", "a + b"),
    "a nested index": ("x = torch.relu(a[0])", "a[0]"),
    "a nested attribute": ("x = torch.relu(a.T)", "a.T"),
    "a negated value as argument": ("x = torch.relu(-a)", "-a"),
    "a negated truth value": ("x = torch.relu(-True)", "-True"),
    "an index of a call": ("x = torch.relu(a)[0]", "torch.relu(a)[0]"),
    "an index of an index": ("x = a[0][1]", "a[0][1]"),
    "a branch": ("if a: pass", "if a:"),
    "a loop": ("for i in a: pass", "for i in a:"),
    "a while loop": ("while a: pass", "while a:"),
    "a with block": ("with a: pass", "with a:"),
    "a try block": ("try: pass\n        finally: pass", "try:"),
    "a match": ("match a:\n            case 1: pass", "match a:"),
    "a conditional expression": ("x = a if b else a", "a if b else a"),
    "a boolean operator": ("x = a and b", "a and b"),
    "a chained comparison": ("x = a < b < a", "a < b < a"),
    "a membership test": ("x = a in b", "a in b"),
    "an import in the method": ("import os", "import os"),
    "a deletion": ("del a", "del a"),
    "a nested function": ("def f(): pass", "def f():"),
    "an assertion": ("assert a", "assert a"),
    "an early return": ("return (a,)", "return (a,)"),
    "a bare name": ("a", "`a`"),
    "a bare operator": ("a + b", "a + b"),
    "an annotated assignment": ("x: int = a", "x: int = a"),
    "several targets": ("x = y = a", "x = y = a"),
    "an unpacking": ("x, y = a", "a"),
    "an undefined name": ("x = torch.relu(missing)", "missing"),
    "an undefined alias": ("x = missing", "missing"),
    "an undefined operand in place": ("missing += a", "missing += a"),
    "an index of an undefined name": ("x = missing[0]", "missing"),
    "a method of an undefined name": ("x = missing.view(1)", "missing.view"),
    "use after release": ("b = None; x = torch.relu(b)", "`b`"),
    "use before definition": ("x = torch.relu(y); y = a", "`y`"),
    "arithmetic of constants": ("x = 1 + 2", "1 + 2"),
    "arithmetic of constants as call": ("x = operator.add(1, 2)", "operator.add(1, 2)"),
    "arithmetic of constants in an argument": ("x = torch.relu(2 * 3)", "2 * 3"),
    "a negative constant": ("x = -1", "-1"),
    "a constant": ("x = 1", "x = 1"),
    "a tuple as value": ("x = (a, b)", "x = (a, b)"),
    "a call of os.system": ("x = os.system('true')", "os.system"),
    "a call of a built-in": ("x = eval('1')", "eval"),
    "an import by call": ("x = torch.relu(__import__('os'))", "__import__('os')"),
    "a call of a value": ("x = a(b)", "`a`"),
    "a method of an attribute": ("x = a.b.c()", "a.b.c"),
    "an attribute of an attribute": ("x = a.b.c", "a.b.c"),
    "self as a value": ("x = self.weight", "self.weight"),
    "self as an argument": ("x = torch.relu(self.weight)", "self.weight"),
    "an assignment to self": ("self.x = a", "self.x = a"),
    "an assignment to an attribute": ("a.x = b", "a.x = b"),
    "an in-place operator on an index": ("a[0] += b", "a[0] += b"),
    "an assignment to a nested index": ("a[0][1] = b", "a[0][1] = b"),
    "a lambda": ("x = torch.relu(lambda: a)", "lambda: a"),
    "an f-string": ("x = torch.einsum(f'{a}')", "f'{a}'"),
    "a walrus": ("x = torch.relu((y := a))", "y := a"),
    "a comprehension": ("x = torch.cat([i for i in a])", "[i for i in a]"),
    "a dictionary": ("x = torch.relu({})", "{}"),
    "a starred argument": ("x = torch.cat(*a)", "*a"),
    "a starred index": ("x = a[*b]", "*b"),
    "double-starred arguments": ("x = torch.relu(**a)", "**a"),
    "a keyword given twice": ("x = torch.sum(a, dim=0, dim=1)", "dim=0, dim=1"),
    "bytes": ("x = torch.relu(b'a')", "b'a'"),
    "a complex number": ("x = torch.relu(1j)", "1j"),
    "a number of a thousand bits": (f"x = torch.add(a, {2**1000})", str(2**1000)[:20]),
    "an attribute of torch that is no constant": ("x = torch.relu(torch.load)", "torch.load"),
    "a module of torch": ("x = torch.relu(torch.hub)", "torch.hub"),
    "an attribute of torch as value": ("x = torch.pi", "torch.pi"),
    "a text as device index": ("x = a.to(device('cuda', '1'))", "device('cuda', '1')"),
    "a word as device index": ("x = a.to(device('cuda:x'))", "device('cuda:x')"),
    "two device indices": ("x = a.to(device('cuda:0', 1))", "device('cuda:0', 1)"),
    "a number as device": ("x = a.to(device(1))", "device(1)"),
    "a device with three arguments": ("x = a.to(device('cuda', 1, 2))", "device('cuda', 1, 2)"),
    "a device with its type twice": ("x = a.to(device('cpu', type='cuda'))", "type='cuda'"),
    "an empty size": ("x = a.view(torch.Size())", "torch.Size()"),
    "a size of two lists": ("x = a.view(torch.Size([1], [2]))", "torch.Size([1], [2])"),
    "a slice of four": ("x = a[slice(1, 2, 3, 4)]", "slice(1, 2, 3, 4)"),
    "a float of a word": ("x = torch.relu(float('abc'))", "float('abc')"),
    "getattr with a default": ("x = getattr(a, 'T', 1)", "getattr(a, 'T', 1)"),
    "getattr with a value as name": ("x = getattr(a, b)", "getattr(a, b)"),
    "getattr with text that is no name": ("x = getattr(a, 'b c')", "getattr(a, 'b c')"),
    "an operator with one operand": ("x = operator.add(a)", "operator.add(a)"),
    "an operator with a keyword": ("x = operator.neg(a, k=1)", "operator.neg(a, k=1)"),
    "setitem without a value": ("operator.setitem(a, 0)", "operator.setitem(a, 0)"),
    "a reserved name": ("inf = torch.relu(a)", "inf = torch.relu(a)"),
    "torch as a name": ("torch = a", "torch = a"),
    "a release of torch": ("a = torch = None", "a = torch = None"),
}


@pytest.mark.parametrize("claim", REJECTED)
def test_refused_with_line_and_construct(claim: str):
    line, construct = REJECTED[claim]
    with pytest.raises(GraphError) as caught:
        parse_program(text_of(line), "some/model.py")
    message = str(caught.value)
    assert message.startswith(f"some/model.py:{FIRST_LINE}: ")
    assert construct in message


CLASS = "class GraphModule(torch.nn.Module):\n"
FILES = {
    "two classes": (text_of() + text_of(), r"f\.py:8: .*class GraphModule"),
    "no class": ("import torch\n", r"f\.py: .*found none"),
    "a function beside the class": ("def f():\n    pass\n", r"f\.py:1: .*`def f\(\):`"),
    "a statement beside the class": (text_of() + "x = 1\n", r"f\.py:6: .*`x = 1`"),
    "a decorated class": ("@torch.compile\n" + CLASS + "    pass\n", r"f\.py:2: .*decorator"),
    "a decorated method": (
        text_of().replace("    def", "    @staticmethod\n    def"),
        r"f\.py:5: .*plain method",
    ),
    "two methods": (text_of() + "    def other(self):\n        pass\n", r"f\.py:3: .*one method"),
    "a class attribute": (CLASS + "    x = 1\n", r"f\.py:1: .*one method"),
    "an empty class": (CLASS + "    pass\n", r"f\.py:1: .*one method"),
    "a method of another name": (text_of().replace("forward", "call"), r"f\.py:4: .*forward"),
    "an async method": (text_of().replace("    def", "    async def"), r"f\.py:3: .*one method"),
    "varargs": (text_of(params="*a"), r"f\.py:4: .*positional.*def forward\(self, \*a\)"),
    "keyword varargs": (text_of(params="**a"), r"f\.py:4: .*positional"),
    "keyword-only arguments": (text_of(params="*, a"), r"f\.py:4: .*positional"),
    "positional-only arguments": (text_of(params="a, /"), r"f\.py:4: .*positional"),
    "a default": (text_of(params="a=1"), r"f\.py:4: .*positional"),
    "no self": (text_of().replace("self, ", ""), r"f\.py:4: .*must be self"),
    "an argument named torch": (text_of(params="torch"), r"f\.py:4: .*reserved: arg `torch`"),
    "an argument named inf": (text_of(params="inf"), r"f\.py:4: .*reserved: arg `inf`"),
    "no return": (text_of("pass", returns="()").replace("return ()", "pass"), r"f\.py:4: .*return"),
    "a return of one value": (text_of(returns="a"), r"f\.py:5: .*tuple: Return `return a`"),
    "a return of a list": (text_of(returns="[a]"), r"f\.py:5: .*tuple: Return"),
    "a return of a call": (text_of(returns="(torch.relu(a),)"), r"f\.py:5: .*torch\.relu\(a\)"),
    "a return of what is not bound": (text_of(returns="(c,)"), r"f\.py:5: .*not defined.*`c`"),
    "no Python": ("class GraphModule(:\n", r"f\.py:1: not Python"),
    "a word in another language": ("klasse GraphModule\n", r"f\.py:1: not Python"),
    "a null byte": ("import torch\0\n", r"f\.py.*(not Python|cannot be parsed)"),
    "brackets nested deeply": (text_of("x = " + "(" * 9999), r"f\.py.*(not Python|cannot be)"),
    "signs nested deeply": (text_of(f"x = torch.relu({'-' * 1500}1)"), r"f\.py.*(nested|parsed)"),
    "attributes nested deeply": (text_of(f"x = a{'.b' * 3000}"), r"f\.py.*"),
    "a callee nested deeply": (text_of(f"x = torch.relu(a{'.b' * 1500}(1))"), r"f\.py.*"),
    "an annotation nested deeply": (text_of(params=f"a: {'-' * 1500}1"), r"f\.py.*(nested|parsed)"),
}


@pytest.mark.parametrize("claim", FILES)
def test_a_file_is_refused_with(claim: str):
    text, message = FILES[claim]
    with pytest.raises(GraphError, match=f"^(?s:{message})"):
        parse_program(text, "f.py")


def test_a_text_beyond_the_limit_is_refused_before_it_is_parsed():
    text = "#" * (MAX_TEXT_BYTES + 1)
    with pytest.raises(GraphError, match=re.escape(f"f.py: {len(text)} characters")):
        parse_program(text, "f.py")


def test_nothing_of_a_file_that_is_accepted_runs(tmp_path: Path):
    marker = tmp_path / "ran"
    touch = f"open({str(marker)!r}, 'w')"
    text = (
        "import module_that_does_not_exist\n"
        f"class GraphModule({touch}):\n"
        f"    def forward(self, a: {touch}) -> {touch}:\n"
        "        return (a,)\n"
    )
    assert parse_program(text).outputs == (A,)
    assert not marker.exists()


@pytest.mark.parametrize(
    "text",
    [
        "{touch}\n",
        "@{touch}\nclass G:\n    def forward(self):\n        return ()\n",
        "class G:\n    x = {touch}\n",
        "class G:\n    def forward(self, a={touch}):\n        return ()\n",
        "class G:\n    def forward(self):\n        {touch}\n        return ()\n",
    ],
)
def test_nothing_of_a_file_that_is_refused_runs(text: str, tmp_path: Path):
    marker = tmp_path / "ran"
    with pytest.raises(GraphError):
        parse_program(text.format(touch=f"open({str(marker)!r}, 'w')"))
    assert not marker.exists()
