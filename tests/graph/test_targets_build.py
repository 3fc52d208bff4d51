"""What a graph may call, that nothing else gets through, and that a built graph computes it."""

import math
import operator

import pytest
import torch

from passnet.errors import GraphError
from passnet.graph.fx.build import build
from passnet.graph.fx.targets import ALLOWED, check_targets, is_allowed, resolve
from passnet.graph.spec import Device, Graph, Op, Program, Ref, Sequence, TensorSpec, retarget
from passnet.graph.text.parse import parse_program
from tests.graph.programs import FIRST_LINE, program_of, text_of


def is_there(target: str) -> bool:
    """Whether the installed torch has an allowed target."""
    if target.startswith("Tensor."):
        return callable(getattr(torch.Tensor, target.removeprefix("Tensor."), None))
    return callable(resolve(target))


def test_every_allowed_target_is_there():
    assert len(ALLOWED) > 1000
    assert [target for target in sorted(ALLOWED) if not is_there(target)] == []


def test_aten_ops_are_allowed_with_and_without_their_overload():
    assert resolve("torch.ops.aten.sym_size.int") is torch.ops.aten.sym_size.int
    assert resolve("torch.ops.aten.index_put") is torch.ops.aten.index_put
    assert resolve("operator.getitem") is operator.getitem
    assert resolve("getattr") is getattr


DANGEROUS = [
    "torch.load('x')",
    "torch.save(a, 'x')",
    "torch.hub.load('x', 'y')",
    "torch.from_file('x')",
    "torch.compile(a)",
    "torch.jit.load('x')",
    "torch.package.PackageImporter('x')",
    "torch.serialization.load('x')",
    "torch.classes.load_library('x')",
    "torch.ops.load_library('x')",
    "torch.utils.cpp_extension.load('x', 'y')",
    "torch.os.system('x')",
    "torch.sys.exit(0)",
    "torch.__builtins__.get('eval')",
    "torch.importlib.import_module('os')",
    "torch.ops.aten.from_file('x')",
    "torch.ops.aten.from_file.default('x')",
    "torch.ops.aten.add.__class__.__base__.__subclasses__()",
    "torch.ops.aten.add.__init__.__globals__.get('sys')",
    "torch.ops.aten.add.Tensor.__init__.__globals__.get('sys')",
    "torch.ops.aten.add._dir()",
    "torch.ops.aten.add.Tensor.py_impl(a)",
    "torch.ops.aten.add.overloads()",
    "torch.ops.prim.Print(a)",
    "torch.set_default_device('cuda')",
    "torch.manual_seed(0)",
    "torch.set_num_threads(1)",
    "torch.cuda.set_device(0)",
    "torch.frombuffer(a)",
    "torch.from_numpy(a)",
    "torch.from_dlpack(a)",
    "torch.as_subclass(a)",
    "torch.func.vmap(a)",
    "torch.autograd.grad(a)",
    "torch._C._jit_set_profiling_mode(True)",
    "torch.Tensor.numpy(a)",
    "a.numpy()",
    "a.tolist()",
    "a.data_ptr()",
    "a.untyped_storage()",
    "a.share_memory_()",
    "a.pin_memory()",
    "a.apply_(b)",
    "a.map_(b, b)",
    "a.backward()",
    "a.register_hook(b)",
    "a.set_(b)",
    "a.resize_(4)",
    "a.as_subclass(b)",
    "a.__reduce_ex__(2)",
    "a.__class__()",
    "a.__dict__()",
    "a.__array__()",
    "a.__getattribute__('data')",
    "a.__setstate__(b)",
    "operator.methodcaller('numpy')",
    "operator.attrgetter('__class__')",
    "operator.itemgetter(0)",
    "operator.call(a)",
    "operator.__class__(a)",
    "getattr(a, '__class__')",
    "getattr(a, 'data')",
    "getattr(a, 'grad_fn')",
    "getattr(a, '__dict__')",
    "a.__class__",
    "a.is_leaf",
]


@pytest.mark.parametrize("call", DANGEROUS)
def test_a_dangerous_call_is_refused_by_its_line(call: str):
    program = program_of("x = torch.relu(a)", f"y = {call}")
    with pytest.raises(GraphError, match=rf"^graph.py:{FIRST_LINE + 1}: ") as caught:
        build(program, "graph.py")
    reasons = ("not on the list of allowed targets", "may not be read", "is no op of torch")
    assert any(text in str(caught.value) for text in reasons)


@pytest.mark.parametrize("target", ["torch.load", "Tensor.relu", "Tensor.numpy", "os.system"])
def test_only_allowed_functions_resolve(target: str):
    with pytest.raises(GraphError, match=f"{target} is not an allowed function"):
        resolve(target)


@pytest.mark.parametrize("name", ["unravel_index", "add.no_such_overload"])
def test_an_op_that_this_torch_lacks_is_named(name: str):
    with pytest.raises(GraphError, match=rf"torch \S+ has no torch\.ops\.aten\.{name}"):
        resolve(f"torch.ops.aten.{name}")


def test_no_path_leads_out_of_an_aten_op():
    for path in ("__class__", "__class__.__base__", "_dir", "Tensor.__init__", "Tensor.decompose"):
        assert not is_allowed(f"torch.ops.aten.add.{path}")
    assert is_allowed("torch.ops.aten.add.Tensor") and not is_allowed("torch.ops.aten")


def test_only_ops_are_checked():
    check_targets(program_of("x = a", "a = None", returns="(x,)"))
    with pytest.raises(GraphError, match="model.py:0: os.system"):
        check_targets(Program((), (Op("x", "os.system", ("true",)),), ()))


def run(*lines: str, returns: str, **values: object) -> tuple[object, ...]:
    """What the built program gives for the values."""
    program = program_of(*lines, params=", ".join(values), returns=returns)
    return build(program)(*values.values())


def t(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


def same(actual: tuple[object, ...], *expected: object) -> bool:
    """Whether the outputs are the expected tensors and numbers, NaN equal to NaN."""
    assert isinstance(actual, tuple) and len(actual) == len(expected)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    return True


def test_functions_methods_and_operators_compute():
    actual = run(
        "x = a + b",
        "y = torch.nn.functional.relu(x, inplace=False)",
        "z = y.sum(dim=0, keepdim=True)",
        "w = 1 - z",
        returns="(w, y)",
        a=t(1, -5),
        b=t(2, 3),
    )
    assert same(actual, t(-2), t(3, 0))


def test_an_in_place_operator_writes_into_every_name_of_its_value():
    assert same(
        run("x = a * 1", "y = x", "x += 2", "y *= 3", returns="(x, y)", a=t(1, 2)),
        t(9, 12),
        t(9, 12),
    )


def test_an_in_place_operator_on_a_view_writes_into_the_whole():
    actual = run("x = a * 1", "y = x[1:]", "y -= 1", "y.neg_()", returns="(x,)", a=t(1, 2, 3))
    assert same(actual, t(1, -1, -2))


def test_an_index_assignment_writes_in_order():
    actual = run(
        "x = a * 1",
        "x[1:] = b",
        "y = x + 0",
        "x[(0,)] = -inf",
        "x[..., -1] = float('nan')",
        returns="(x, y)",
        a=t(1, 2, 3),
        b=t(7),
    )
    assert same(actual, t(-math.inf, 7, math.nan), t(1, 7, 7))


def test_a_name_bound_again_means_the_new_value():
    actual = run("y = a", "a = b * 2", "x = a + y", "b = None", returns="(x, a)", a=t(1), b=t(10))
    assert same(actual, t(21), t(20))


def test_several_results_are_taken_apart():
    actual = run(
        "x = torch.max(a, dim=0)",
        "v = x[0]",
        "i = x[1]",
        "p = torch.split(a, [1, 2])",
        "q = p[1]",
        returns="(v, i, [q, v], 3, None)",
        a=t(1, 9, 4),
    )
    assert same(actual[:2], torch.tensor(9.0), torch.tensor(1))
    assert same(tuple(actual[2]), t(9, 4), torch.tensor(9.0)) and actual[3:] == (3, None)  # type: ignore[arg-type]


def test_attributes_dtypes_and_devices_are_values():
    actual = run(
        "s = a.shape",
        "n = s[-1]",
        "x = torch.zeros((n, 1), dtype=torch.int64, device=device(type='cpu'))",
        "y = x.to(torch.float64)",
        returns="(x, y, n)",
        a=t(1, 2),
    )
    assert same(actual, torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, 1).double(), 2)


def test_sequences_and_slices_reach_the_op_as_they_are():
    program = program_of(
        "x = a.view(torch.Size([1, 2]))",
        "y = x[slice(None, n, None), ::2]",
        params="a, n",
        returns="(y,)",
    )
    module = build(program)
    arguments = [node.args[1] for node in module.graph.nodes if node.op.startswith("call")]
    assert arguments[0] == (1, 2)
    assert arguments[1][1] == slice(None, None, 2) and isinstance(arguments[1][0], slice)
    assert same(module(t(5, 6), 1), torch.tensor([[5.0]]))


def test_every_node_knows_its_op():
    module = build(program_of("x = a", "y = x + b", "x = None", "z = torch.relu(y)"))
    indices = [
        node.meta["custom"]["op"] for node in module.graph.nodes if node.op.startswith("call")
    ]
    assert indices == [0, 1]


@pytest.mark.parametrize(
    "literal", ["device('gpu')", "device('cuda', -1)", f"device('cuda', {2**63})"]
)
def test_a_device_that_torch_does_not_know_is_refused(literal: str):
    with pytest.raises(GraphError, match="^model.py:5: device '(gpu|cuda)'"):
        build(program_of(f"x = a.to({literal})"))


def test_retargeting_changes_literals_keywords_and_text():
    program = parse_program(
        text_of(
            "x = torch.zeros(2, device=device(type='cuda', index=0))",
            "y = a.to('cuda:0', non_blocking=True)",
            "z = torch.ones(2, device='cuda')",
            "w = torch.cat([a, device('cuda')], (device('cpu'),))",
            "e = torch.amp.autocast_mode._enter_autocast('cuda', None, False, None)",
            "v = torch.einsum('cuda', a)",
            "u = a.to(torch.float16)",
            returns="(device('cuda', 1), x)",
        )
    )
    graph = Graph(program, tuple(TensorSpec(name, (2,), "float32", "cuda:0") for name in "ab"))
    moved = retarget(graph, "cpu")
    ops = moved.program.ops
    cpu = Device("cpu")
    assert ops[0].kwargs == (("device", cpu),)
    assert ops[1].args == (Ref("a"), "cpu")
    assert ops[2].kwargs == (("device", "cpu"),)
    assert ops[3].args == (
        Sequence("list", (Ref("a"), cpu)),
        Sequence("tuple", (cpu,)),
    )
    assert ops[4].args[0] == "cpu"
    assert ops[5:] == program.ops[5:]
    assert moved.program.outputs == (cpu, Ref("x"))
    assert {spec.device for spec in moved.tensors} == {"cpu"}
    second = retarget(moved, "cuda", 2)
    assert second.program.ops[1].args == (Ref("a"), "cuda:2")
    assert second.program.ops[0].kwargs == (("device", Device("cuda", 2)),)
    assert {spec.device for spec in second.tensors} == {"cuda:2"}
