"""Random nets made of parts with state: buffers, attributes, hooks, draws, caches, tied weights."""

import random
from collections.abc import Callable
from types import MethodType, SimpleNamespace
from typing import Any

import numpy as np
import torch

WIDTH = 6


class Part(torch.nn.Module):
    """A part of a net; all take and return a tensor of one width."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)


class Plain(Part):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) + x


class Norm(Part):
    """A batch norm in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x))


class Training(Norm):
    """A batch norm that stays in training mode."""

    def train(self, mode: bool = True) -> "Training":
        super().train(mode)
        self.norm.training = True
        return self


class DropoutOn(Part):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.3, training=True)


class Counter(Part):
    """Counts its calls in an attribute, a list, a dict and a plain object."""

    def __init__(self) -> None:
        super().__init__()
        self.num, self.seen, self.by, self.own = 0, [], {"calls": 0}, SimpleNamespace(calls=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.num += 1
        self.seen.append(x.shape[0])
        self.by["calls"] += 1
        self.own.calls += 1
        return x * 0.5


class Schedule(Counter):
    """Reads the count of its calls."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.num


class BufferCounter(Part):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x.mean(0)
        return x + self.total


class BufferReplaced(BufferCounter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total = self.total * 0.5 + x[0]
        return x - self.total


class Cache(Part):
    def __init__(self) -> None:
        super().__init__()
        self.table: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if WIDTH not in self.table:
            self.table[WIDTH] = torch.linspace(0, 1, WIDTH)
        return x * self.table[WIDTH]


class Stream(Part):
    """Adds what the call before left."""

    def __init__(self) -> None:
        super().__init__()
        self.last: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        out = y if self.last is None else y + self.last
        self.last = y.detach()
        return out


class WeightWriter(Part):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.linear.bias.data.add_(0.1)
        return self.linear(x)


class ArgumentWriter(Part):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.mul_(0.9))


class Draws(Part):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(WIDTH) + random.random() + float(np.random.rand())


class Branch(Part):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) if x.sum() > 0 else x.sigmoid()


class Hooked(Part):
    """Keeps what a hook of its linear layer saw."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[torch.Tensor] = []
        self.linear.register_forward_hook(lambda module, given, out: self.kept.append(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y * self.kept.pop()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Hooked":
        copied = type(self)()
        memo[id(self)] = copied
        copied.load_state_dict(self.state_dict())
        return copied.train(self.training)


class Patched(Part):
    """Its linear layer has a forward of its own."""

    def __init__(self) -> None:
        super().__init__()

        def forward(linear: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(torch.nn.functional.linear(x, linear.weight))

        self.linear.forward = MethodType(forward, self.linear)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Tied(Part):
    def __init__(self) -> None:
        super().__init__()
        self.other = torch.nn.Linear(WIDTH, WIDTH)
        self.other.weight = self.linear.weight
        self.register_buffer("row", self.linear.weight.detach()[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.linear(x)) + self.row


class Held(Part):
    """Reads tensors that are no parameters, from a list and a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.scales, self.by = [torch.full((WIDTH,), 1.5)], {"shift": torch.ones(WIDTH)}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scales[0] + self.by["shift"]


class Late(Counter):
    """Fails at its fifth call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.num == 4:
            raise ValueError("enough")
        return super().forward(x)


class Modes(Part):
    """Leaves gradients off and a setting of numpy changed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        np.seterr(divide="ignore")
        return x.exp()


PARTS: tuple[Callable[[], torch.nn.Module], ...] = (
    Plain, Norm, Training, DropoutOn, Counter, Schedule, BufferCounter, BufferReplaced, Cache,
    Stream, WeightWriter, ArgumentWriter, Draws, Branch, Hooked, Patched, Tied, Held, Late, Modes,
)  # fmt: skip


class Net(torch.nn.Module):
    """Parts one after the other; returns all their outputs, of which some may share memory."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(PARTS[number]() for number in numbers)
        self.eval()

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        outputs = []
        for part in self.parts:
            x = part(x)
            outputs.append(x)
        return {"last": x, "views": [output[:1] for output in outputs], "number": len(outputs)}
