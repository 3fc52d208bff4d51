import torch


class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = in_0 - in_1
        tmp_1 = tmp_0.pow(2)
        tmp_2 = tmp_1.mean(-1)
        return (tmp_2,)
