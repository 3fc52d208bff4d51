class Program_weight_tensor_meta_in_0:
    name = "in_0"
    shape = [2, 4, 32, 40]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 1.0
    data = None


class Program_weight_tensor_meta_in_1:
    name = "in_1"
    shape = [2, 1, 32, 40]
    dtype = "torch.float32"
    device = "cpu"
    mean = -1e30
    std = 1e31
    data = None
