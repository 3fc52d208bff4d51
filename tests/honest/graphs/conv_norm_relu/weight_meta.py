class Program_weight_tensor_meta_in_1:
    name = "in_1"
    shape = [8, 6, 3, 3]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.14
    data = None


class Program_weight_tensor_meta_in_2:
    name = "in_2"
    shape = [8]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.3
    data = None


class Program_weight_tensor_meta_in_3:
    name = "in_3"
    shape = [8]
    dtype = "torch.float32"
    device = "cpu"
    mean = 1.0
    std = 0.2
    data = None
    min_val = 0.5
    max_val = 1.5


class Program_weight_tensor_meta_in_4:
    name = "in_4"
    shape = [8]
    dtype = "torch.float32"
    device = "cpu"
    mean = 1.0
    std = 0.3
    data = None


class Program_weight_tensor_meta_in_5:
    name = "in_5"
    shape = [8]
    dtype = "torch.float32"
    device = "cpu"
    mean = 0.0
    std = 0.3
    data = None
