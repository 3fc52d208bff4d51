import torch


class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = in_0.view(2, 24, 4, 16)
        tmp_1 = tmp_0.transpose(1, 2)
        tmp_2 = in_1 * 3.0
        return (tmp_1, tmp_2)
