class Program_weight_tensor_meta_in_2:
    name = "in_2"
    shape = [96]
    dtype = "torch.float32"
    device = "cpu"
    mean = 1.0
    std = 0.3
    data = None


class Program_weight_tensor_meta_in_3:
    name = "in_3"
    shape = [96]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.3
    data = None
