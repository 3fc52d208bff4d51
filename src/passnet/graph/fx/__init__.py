"""Graphs as torch.fx modules.

build, from_fx      a program to a `torch.fx.GraphModule`, and back, with specs of tensors
targets, operators  the allow-list of call targets, and Python's operator syntax
"""
