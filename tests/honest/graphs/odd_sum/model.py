import torch


class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor):
        tmp_0 = torch.sum(in_0, -1)
        return (tmp_0,)
