import re
from xml.etree import ElementTree

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.suite.suite import load_suite
from passnet.pages.figures.drawing import draw

SVG = "{http://www.w3.org/2000/svg}"


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    root = ElementTree.fromstring(svg)
    rects = [item.attrib for item in root.iter(f"{SVG}rect") if "x" in item.attrib]
    return [
        (float(item["x"]), float(item["y"]), float(item["width"]), float(item["height"]))
        for item in rects
    ]


def test_every_graph_of_the_demo_is_drawn_without_overlap():
    for task in load_suite("demo").tasks:
        graph = task.graphs[0].graph
        found = boxes(draw(graph, task.name))
        expected = len(graph.tensors) + len(graph.program.ops) + len(graph.program.outputs)
        assert len(found) == expected, task.name
        for index, (x, y, width, height) in enumerate(found):
            for left, top, wide, high in found[:index]:
                apart = (
                    x + width <= left or left + wide <= x or y + height <= top or top + high <= y
                )
                assert apart, task.name


def test_ops_lie_below_what_they_read_and_texts_are_escaped():
    text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n"
    text += "        a = x < 3\n        b = torch.where(a, x, 0)\n        return (b, a)\n"
    graph = Graph(parse_program(text), (TensorSpec("x", (2, 3), "float32"),))
    svg = draw(graph, "a < b & c")
    assert "a &lt; b &amp; c" in svg
    tops = {
        name: float(re.findall(rf'y="([\d.]+)"[^>]*>{name}<', svg)[0])
        for name in ("x", "operator.lt", "torch.where", "output")
    }
    assert tops["x"] < tops["operator.lt"] < tops["torch.where"] < tops["output"]
    assert "float32 2×3" in svg and "bool 2×3" in svg
