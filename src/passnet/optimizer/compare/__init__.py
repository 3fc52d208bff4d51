"""Backends compared with eager torch.

agreement       on the example, on other arguments, with other weights
outputs         outputs of one call, with eager torch's and float64
float64_copy    a net in float64, a weight at a time
fresh_values    the other arguments: usual, other masks, hostile, out of range
tensor_changes  changes of one tensor that those are made by
form            strides of outputs, and memory that they share
"""
