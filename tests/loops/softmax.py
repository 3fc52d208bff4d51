"""A sum and its softmax, and how a right answer computes them."""

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program

SOFTMAX = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, w):
        y = x + w
        z = torch.nn.functional.softmax(y, dim=-1)
        return (y, z)
"""

ANSWER = """
range t0 t1
for i0 N0 :
  over r0 N1 :
    t0 = add a0 [ i0 r0 ] a1 [ r0 ]
    put t0 [ i0 r0 ] t0
    max s0 t0
  done
  over r0 N1 :
    sum s1 exp sub t0 [ i0 r0 ] s0
  done
  over r0 N1 :
    put t1 [ i0 r0 ] truediv exp sub t0 [ i0 r0 ] s0 s1
  done
end
"""


def softmax_graph(rows: int = 12, columns: int = 40) -> Graph:
    specs = (TensorSpec("x", (rows, columns), "float32"), TensorSpec("w", (columns,), "float32"))
    return Graph(parse_program(SOFTMAX, "softmax"), specs)
