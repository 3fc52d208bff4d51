class Program_weight_tensor_meta_in_0:
    name = "in_0"
    shape = [4, 30]
    dtype = "torch.int64"
    device = "cpu"
    mean = None
    std = None
    data = None
    min_val = 0
    max_val = 99
