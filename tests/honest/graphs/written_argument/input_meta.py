class Program_weight_tensor_meta_in_0:
    name = "in_0"
    shape = [64, 200]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 1.0
    data = None


class Program_weight_tensor_meta_in_1:
    name = "in_1"
    shape = [64, 200]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.1
    std = 1.0
    data = None
