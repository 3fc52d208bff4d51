"""Small nets that are optimised in tests."""

import torch


class Block(torch.nn.Module):
    """A net with a default argument, an output that comes twice, and a buffer that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.register_buffer("shift", torch.ones(8), persistent=False)

    def forward(
        self, x: torch.Tensor, y: torch.Tensor | None = None, scale: float = 2.0
    ) -> dict[str, torch.Tensor]:
        hidden = torch.relu(self.linear(x)) * scale + self.shift
        added = hidden if y is None else hidden + y
        return {"second": added, "first": self.norm(hidden), "again": added}


def block() -> Block:
    torch.manual_seed(0)
    return Block().eval()


class Broken(torch.nn.Module):
    """A block with a graph break."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.linear(x)) * x
        torch._dynamo.graph_break()
        return torch.tanh(torch.relu(y)) + y


class Loop(torch.nn.Module):
    """Blocks with graph breaks, in a loop and called twice."""

    def __init__(self, num_blocks: int = 2) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Broken() for _ in range(num_blocks)])
        self.last = Broken()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.last(self.last(x))


def loop() -> Loop:
    torch.manual_seed(0)
    return Loop().eval()


class OpenLoop(torch.nn.Module):
    """A break within a loop, of which Dynamo finds nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = torch.tanh(x) * x
            torch._dynamo.graph_break()
        return x
