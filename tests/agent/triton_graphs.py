"""Small graphs whose generated Triton has every form that is written, and tasks of them."""

from passnet.agent.attempts.session import Session
from passnet.agent.authors.compiler import CompilePlan, TaskCompiler, range_source
from passnet.graph.spec import Graph, TensorSpec
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.task import Task, TaskGraph
from passnet.passes.codegen.folder_text import pass_folder
from passnet.passes.codegen.lowered_ranges import GraphLowering, Options
from passnet.passes.files import Files
from tests.graph.programs import program_of

FORMS: dict[str, tuple[list[str], str, dict[str, tuple[int, ...]]]] = {
    "tiles": (
        ["x = a.transpose(0, 1)", "y = x + b", "z = y.contiguous()"],
        "(z,)",
        {"a": (65, 130), "b": (130, 65)},
    ),
    "persistent": (
        ["y = torch.nn.functional.layer_norm(a, (300,), b, c, 1e-05)",
         "z = torch.nn.functional.gelu(y)"],
        "(y, z)",
        {"a": (5, 300), "b": (300,), "c": (300,)},
    ),
    "looped": (
        ["x = a * 0.5", "y = torch.nn.functional.layer_norm(x, (3000,), b, c, 1e-05)"],
        "(y,)",
        {"a": (3, 3000), "b": (3000,), "c": (3000,)},
    ),
    "online softmax": (["y = torch.softmax(a, -1)"], "(y,)", {"a": (3, 1500)}),
    "outer sum": (["x = torch.tanh(a)", "y = x.sum(0)"], "(y,)", {"a": (300, 70)}),
    "split sum": (["x = a * a", "y = x.sum()"], "(y,)", {"a": (70_000,)}),
    "variance": (["x = torch.var(a, -1)", "y = torch.sqrt(x)"], "(x, y)", {"a": (7, 300)}),
    "place of the maximum": (["y = torch.argmax(a, -1)"], "(y,)", {"a": (7, 30)}),
    "product": (["y = torch.prod(a, -1)"], "(y,)", {"a": (7, 9)}),
    "any": (["x = a > 2.5", "y = torch.any(x, -1)"], "(y,)", {"a": (7, 40)}),
    "scan": (["y = torch.cumsum(a, -1)"], "(y,)", {"a": (7, 40)}),
    "looped scan": (
        ["x = a > 0.0", "y = torch.cumsum(x, -1)"], "(y,)", {"a": (3, 3000)}
    ),
    "parts of a buffer": (
        ["x = torch.nn.functional.max_pool2d(a, 3, 2)", "y = torch.cat((b, c, x), 1)"],
        "(y,)",
        {"a": (2, 3, 9, 9), "b": (2, 2, 4, 4), "c": (2, 4, 4, 4)},
    ),
    "read often": (
        ["p = a + b", "q = p + c", "r = q + d", "s = r + e", "y = s * 2.0",
         "t = s.transpose(0, 1)", "z = torch.softmax(t, -1)"],
        "(y, z)",
        dict.fromkeys("abcde", (9, 20)),
    ),
    "order of loops": (["x = a.permute(0, 2, 1)", "y = x * 2.0"], "(y,)", {"a": (4, 8, 33)}),
    "around a product": (
        ["x = torch.relu(a)", "y = x * 2.0", "z = torch.matmul(y, b)", "u = torch.tanh(z)",
         "v = u + 1.0"],
        "(v,)",
        {"a": (16, 16), "b": (16, 16)},
    ),
    "around a convolution": (
        ["x = torch.relu(a)", "y = torch.conv2d(x, b, None, 1, 1)",
         "z = torch.nn.functional.silu(y)"],
        "(z,)",
        {"a": (2, 4, 9, 9), "b": (8, 4, 3, 3)},
    ),
    "functions": (
        ["e = torch.exp(a)", "l = torch.log1p(e)", "t = torch.tanh(l)", "f = torch.erf(t)",
         "x = torch.expm1(f)", "s = torch.sinh(a)", "r = torch.round(s)", "q = torch.trunc(s)",
         "p = torch.pow(e, f)"],
        "(x, s, r, q, p)",
        {"a": (70,)},
    ),
}  # fmt: skip
"""By what is generated: the calls, what is returned, and the shapes of the arguments."""

ROUNDED: Options = (("emulate_precision_casts", True),)


def graph(name: str, dtype: str = "float32") -> Graph:
    """A graph of `FORMS`."""
    calls, returns, shapes = FORMS[name]
    tensors = (TensorSpec(arg, shape, dtype, mean=0.0, std=1.0) for arg, shape in shapes.items())
    return Graph(program_of(*calls, params=", ".join(shapes), returns=returns), tuple(tensors))


def folder_of(graph: Graph, plan: CompilePlan | None = None) -> Files:
    """The folder that the compiler writes for one graph, by a plan that rounds in a low dtype."""
    is_low = any(spec.dtype in ("bfloat16", "float16") for spec in graph.tensors)
    plan = plan or CompilePlan(ROUNDED if is_low else ())
    lowering = GraphLowering(graph, "graph", "cuda")
    ranges = [lowering.lowered(span, plan.options) for span in lowering.largest(plan.options)]
    return pass_folder([range_source(lowered, plan) for lowered in ranges if lowered])


def compiler_for(*graphs: Graph) -> TaskCompiler:
    """The compiler of a task for CUDA. What it writes cannot be judged here."""
    suite_graphs = (
        TaskGraph("task", f"task-{number}", graph) for number, graph in enumerate(graphs)
    )
    settings = RunSettings(JudgeSettings(device="cuda", rules="strict"), 1, "none")
    return TaskCompiler(Session(Task("task", tuple(suite_graphs)), JudgeDesk(settings, "direct")))
