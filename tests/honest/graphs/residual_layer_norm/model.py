import torch


class GraphModule(torch.nn.Module):
    def forward(
        self, in_0: torch.Tensor, in_1: torch.Tensor, in_2: torch.Tensor, in_3: torch.Tensor
    ):
        tmp_0 = in_0 + in_1
        tmp_1 = torch.nn.functional.layer_norm(tmp_0, (96,), in_2, in_3, 1e-05)
        return (tmp_0, tmp_1)
