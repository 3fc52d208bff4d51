class Program_weight_tensor_meta_in_1:
    name = "in_1"
    shape = [64, 72]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.125
    data = None


class Program_weight_tensor_meta_in_2:
    name = "in_2"
    shape = [72]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.3
    data = None
