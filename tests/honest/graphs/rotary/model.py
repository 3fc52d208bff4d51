import torch


class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor, in_2: torch.Tensor):
        tmp_0 = in_0 * in_1
        tmp_1 = in_0[Ellipsis, slice(None, 16, None)]
        tmp_2 = in_0[Ellipsis, slice(16, None, None)]
        tmp_3 = -tmp_2
        tmp_4 = torch.cat((tmp_3, tmp_1), dim=-1)
        tmp_5 = tmp_4 * in_2
        tmp_6 = tmp_0 + tmp_5
        return (tmp_6,)
