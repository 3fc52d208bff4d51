class Program_weight_tensor_meta_in_0:
    name = "in_0"
    shape = [2, 4, 24, 32]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 1.0
    data = None


class Program_weight_tensor_meta_in_1:
    name = "in_1"
    shape = [24, 32]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.7
    data = None


class Program_weight_tensor_meta_in_2:
    name = "in_2"
    shape = [24, 32]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.7
    data = None
