"""The example passes on arguments of any dtype, shape and strides, through the backend: equal to
eager torch, or not applied, and never a crash.
"""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.fx

from passnet.graph.fx.build import build
from passnet.graph.values.inputs import make_inputs
from passnet.judge.score.tolerance import smallest_t
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import Task
from passnet.passes.apply.first_call import difference
from passnet.passes.apply.rewrite import PassReport, apply_passes
from passnet.passes.backend import passnet_backend
from passnet.passes.load import loaded_passes
from passnet.passes.match.pattern import Pass, as_module
from tests.passes.values import stored, tensors

FOLDER = Path(__file__).parents[2] / "examples" / "passes"
FOLDERS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool)


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {task.name: task for task in load_suite("demo").tasks}


def matched_arguments(task: Task, passes: list[Pass]) -> list[tuple[Pass, list[Any]]]:
    """What the parameters of each pass stand for in the smallest graph that it matches."""
    found: dict[str, tuple[Pass, list[Any]]] = {}
    sizes = {
        graph.name: sum(spec.num_elements for spec in graph.graph.tensors) for graph in task.graphs
    }
    for variant in sorted(task.graphs, key=lambda graph: sizes[graph.name]):
        module = build(variant.graph.program)
        values = tensors(variant.graph, make_inputs(variant.graph, "fresh", seed=0))
        _, sites = apply_passes(build(variant.graph.program), passes, values)
        names = {
            site.source.name: [
                value.name if isinstance(value, torch.fx.Node) else (value,)
                for value in site.inputs
            ]
            for site in sites
        }
        recorded: dict[str, Any] = {}

        class Recording(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                recorded[n.name] = value = super().run_node(n)  # noqa: B023 (run at once)
                return value

        Recording(module).run(*values)
        for site in sites:
            arguments = [
                recorded[value] if isinstance(value, str) else value[0]
                for value in names[site.source.name]
            ]
            found.setdefault(site.source.name, (site.source, arguments))
    return list(found.values())


def other(tensor: torch.Tensor, chance: random.Random) -> torch.Tensor:
    """A tensor with another dtype, other sizes, or another order in memory."""
    match chance.randrange(8):
        case 0:
            dtype = chance.choice(DTYPES)
            return tensor > 0 if dtype == torch.bool else tensor.to(dtype)
        case 1 if tensor.dim() > 1:
            first, second = chance.sample(range(tensor.dim()), 2)
            return tensor.transpose(first, second).contiguous().transpose(first, second)
        case 2 if tensor.dim():
            dim = chance.randrange(tensor.dim())
            size = tensor.shape[dim]
            return tensor.narrow(dim, 0, min(chance.choice((0, 1, max(size // 2, 1))), size))
        case 3 if tensor.dim():
            dim = chance.randrange(tensor.dim())
            return tensor.narrow(dim, 0, min(1, tensor.shape[dim])).expand(tensor.shape)
        case 4:
            return tensor.unsqueeze(0)
        case 5 if tensor.dim() and len(tensor):
            return tensor[0]
        case 6 if tensor.dim():
            return torch.cat((tensor, tensor), -1)[..., : tensor.shape[-1]]
        case _:
            return torch.cat((tensor, tensor), 0) if tensor.dim() else tensor
    return tensor


def compare_once(pass_: Pass, folder: Path, arguments: list[Any]) -> bool:
    """Whether a pass was applied, and then as eager torch is; False where eager torch refuses."""
    module = as_module(pass_.pattern)
    try:
        expected = module(*copied(arguments))
    except (RuntimeError, IndexError, TypeError, NotImplementedError):
        return False
    reports: list[PassReport] = []
    # As a judge has it, so that nothing but guards protects from a replacement.
    options = {"passes": folder, "report": reports.extend, "is_judged": True}
    with torch.no_grad():
        compiled = passnet_backend(specialised(module, arguments), arguments, options=options)
        actual = compiled(*copied(arguments))
    assert difference(actual, expected) is None, [describe(value) for value in arguments]
    for first, second in zip(actual, expected, strict=True):
        dtype = str(second.dtype).removeprefix("torch.")
        t = smallest_t(stored(first), stored(second), dtype)
        assert t is not None and t <= -5, (t, [describe(value) for value in arguments])
    return any(report.num_matches for report in reports)


def copied(arguments: list[Any]) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in arguments]


def describe(value: Any) -> Any:
    is_tensor = isinstance(value, torch.Tensor)
    return (value.dtype, tuple(value.shape), value.stride()) if is_tensor else value


def specialised(module: torch.fx.GraphModule, arguments: list[Any]) -> torch.fx.GraphModule:
    """The module with its literals in place, as a graph of a net has them."""
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, Any] = {}
    remaining = iter(arguments)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = next(remaining)
            made = graph.placeholder(node.name)
            values[node] = made if isinstance(value, torch.Tensor) else value
        elif node.op == "output":
            graph.output(torch.fx.map_arg(node.args[0], lambda source: values[source]))
        else:
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda source: values[source])
            values[node] = graph.create_node(node.op, node.target, args, kwargs)
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def check(name: str, task: Task, num_tries: int) -> None:
    folder, chance = FOLDER / name, random.Random(name)
    cases = matched_arguments(task, loaded_passes(folder))
    assert cases
    for pass_, arguments in cases:
        assert compare_once(pass_, folder, arguments), "as captured"
        num_applied = 0
        for _ in range(num_tries):
            changed = list(arguments)
            places = [i for i, value in enumerate(arguments) if isinstance(value, torch.Tensor)]
            if chance.random() < 0.3:  # all of them alike
                seed = chance.random()
                for place in places:
                    changed[place] = other(arguments[place], random.Random(seed))
            for place in chance.sample(places, chance.randint(1, len(places))):
                changed[place] = other(changed[place], chance)
            num_applied += compare_once(pass_, folder, changed)
        assert num_tries < 100 or num_applied, "changed so that nothing was applied"


@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_is_as_eager_torch_or_not_applied(name: str, tasks: dict[str, Task]) -> None:
    check(name, tasks[name], 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_is_as_eager_torch_or_not_applied_many_times(
    name: str, tasks: dict[str, Task]
) -> None:
    check(name, tasks[name], 500)
