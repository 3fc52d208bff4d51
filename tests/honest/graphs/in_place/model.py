import torch


class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor, in_2: torch.Tensor):
        tmp_0 = in_0 * in_1
        tmp_0 += in_2
        tmp_1 = tmp_0
        tmp_2 = torch.nn.functional.relu(tmp_1, inplace=True)
        return (tmp_2,)
