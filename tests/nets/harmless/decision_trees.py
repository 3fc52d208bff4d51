"""Two hundred decision trees as products of matrices: comparisons, paths and leaves."""

import torch
from torch import nn

KIND = "harmless"


class Trees(nn.Module):
    """Trees of depth 4: fifteen comparisons and sixteen leaves each."""

    def __init__(self, num_trees=200, num_features=12) -> None:
        super().__init__()
        self.register_buffer("feature", torch.randint(num_features, (num_trees * 15,)))
        self.register_buffer("threshold", torch.randn(num_trees * 15))
        paths, depth = torch.zeros(15, 16), torch.zeros(16)
        for leaf in range(16):
            node = 0
            for level in range(4):
                goes_right = leaf >> (3 - level) & 1
                paths[node, leaf] = 1.0 if goes_right else -1.0
                depth[leaf] += goes_right
                node = 2 * node + 1 + goes_right
        self.register_buffer("paths", paths)
        self.register_buffer("depth", depth)
        self.leaves = nn.Parameter(torch.randn(num_trees, 16))

    def forward(self, x):
        is_above = (x[:, self.feature] > self.threshold).to(self.paths.dtype).view(len(x), -1, 15)
        is_leaf = (is_above @ self.paths == self.depth).to(self.leaves.dtype)
        score = (is_leaf * self.leaves).sum((1, 2))
        return torch.sigmoid(score / 16)


def make():
    return Trees().eval()


def example():
    return (torch.randn(16, 12),)


def calls():
    yield "fresh", (torch.randn(16, 12),)
    yield "small", (1e-3 * torch.randn(16, 12),)
    yield "large", (100 * torch.randn(16, 12),)
    yield "zeros", (torch.zeros(16, 12),)
