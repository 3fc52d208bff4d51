import torch


class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = torch.nn.functional.relu(in_0, inplace=True)
        tmp_1 = tmp_0 * 0.5
        tmp_2 = tmp_1 + in_1
        return (tmp_2,)
