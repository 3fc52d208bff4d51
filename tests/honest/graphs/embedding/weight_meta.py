class Program_weight_tensor_meta_in_1:
    name = "in_1"
    shape = [100, 64]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.1
    data = None


class Program_weight_tensor_meta_in_2:
    name = "in_2"
    shape = [30, 64]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.1
    data = None
