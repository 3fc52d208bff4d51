"""The ops that the CPU does not implement in a dtype."""

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.values.cost import missing_kernels
from tests.graph.programs import program_of


def test_an_op_is_tried_in_each_of_its_modes():
    larger = 'torch.nn.functional.interpolate(b, scale_factor=0.5, mode="bilinear", antialias=True)'
    program = program_of(
        'x = torch.nn.functional.interpolate(a, scale_factor=0.5, mode="nearest")',
        f"y = {larger}",
        returns="(x, y)",
    )
    shapes = {"a": (1, 1, 4, 4), "b": (1, 2, 8, 8)}
    specs = tuple(TensorSpec(name, shape, "float16") for name, shape in shapes.items())
    assert list(missing_kernels(Graph(program, specs))) == [1]
