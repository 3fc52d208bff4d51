"""Random nets of images: convolutions and linear layers among views, sums and writes in place."""

import random

import torch
import torch.nn.functional as F
from torch import nn

ACTIVATIONS = {
    "relu": F.relu,
    "silu": F.silu,
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "relu6": F.relu6,
}
STEPS = (
    *("conv", "conv", "conv", "norm", "act", "act in place", "add", "add in place", "cat", "pool"),
    *("flatten", "permute", "mean", "linear", "chunk", "shuffle", "slice", "contiguous"),
    "write view",
)


class RandomNet(nn.Module):
    """A net whose steps each take an earlier value; it returns some values, and the last one."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.layers = nn.ModuleList()
        self.plan: list[tuple[str, int, int, str]] = []
        shapes = [torch.Size((2, 8, 6, 6))]
        for _ in range(self.random.randint(3, 14)):
            step = self.random.choice(STEPS), self.random.randrange(len(shapes))
            self._add(*step, shapes)
        self.outputs = [*self.random.choices(range(len(shapes)), k=2), len(shapes) - 1]

    def _add(self, kind: str, of: int, shapes: list[torch.Size]) -> None:
        shape = shapes[of]
        alike = [n for n, each in enumerate(shapes) if each == shape]
        name = self.random.choice([*ACTIVATIONS])
        self.plan.append((kind, of, self.random.choice(alike), name))
        if kind == "conv" and len(shape) == 4:
            window, stride = self.random.choice([1, 3]), self.random.choice([1, 1, 2])
            groups = self.random.choice([1, 1, shape[1]])
            out = shape[1] if groups > 1 else self.random.choice([4, 8, 16])
            settings = {"stride": stride, "groups": groups, "bias": self.random.random() < 0.5}
            self.layers.append(nn.Conv2d(shape[1], out, window, padding=window // 2, **settings))
        elif kind == "norm" and len(shape) == 4:
            norm = nn.BatchNorm2d(shape[1])
            for tensor in (norm.weight, norm.running_var):
                nn.init.uniform_(tensor, 0.5, 2.0)
            nn.init.normal_(norm.running_mean)
            self.layers.append(norm)
        elif kind == "linear":
            self.layers.append(nn.Linear(shape[-1], 5))
        else:
            self.layers.append(nn.Identity())
        try:
            with torch.no_grad():
                value = self._step(len(self.plan) - 1, [torch.zeros(each) for each in shapes])
            shapes.append(value.shape)
        except (RuntimeError, IndexError, ValueError):  # torch takes no such shape
            self.plan.pop()
            del self.layers[-1]

    def _step(self, number: int, values: list[torch.Tensor]) -> torch.Tensor:
        kind, of, beside, name = self.plan[number]
        x, other = values[of], values[beside]
        match kind:
            case "conv" | "norm" | "linear":
                return self.layers[number].eval()(x)
            case "act":
                return ACTIVATIONS[name](x)
            case "act in place":
                return ACTIVATIONS[name](x, inplace=True)
            case "add":
                return x + other
            case "add in place":
                x += other
                return x
            case "cat":
                return torch.cat([x, other], 1)
            case "pool":
                return F.max_pool2d(x, 2)
            case "flatten":
                return x.flatten(2) if x.dim() > 3 else x.reshape(x.shape[0], -1)
            case "permute":
                return x.permute(0, 2, 3, 1)
            case "mean":
                return x.mean((2, 3))
            case "chunk":
                return x.chunk(2, 1)[1]
            case "shuffle":
                batch, channels, height, width = x.shape
                pairs = x.reshape(batch, 2, channels // 2, height, width)
                return pairs.transpose(1, 2).reshape(batch, channels, height, width)
            case "slice":
                return x[:, :, ::2]
            case "contiguous":
                return x.contiguous()
        if x.is_contiguous():
            x.view(x.shape[0], -1)[:, 0].mul_(1.5)
        return x

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return some values of the net."""
        values = [x * 1.0]
        for number in range(len(self.plan)):
            values.append(self._step(number, values))
        return tuple(values[number] for number in self.outputs)
