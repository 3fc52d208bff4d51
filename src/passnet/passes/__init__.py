"""Passes: a pattern and its replacement, plugged into torch.compile.

folder, files, load      a pass folder as text and as imported code
match, apply             the search for a pattern, and its replacement in a graph
backend, inductor_pass   `torch.compile(net, backend="passnet")`, and stock `torch.compile`
cpp, compilation         C++ kernels for pass authors, compiled once by content
kernel_op, kernel_list   C++ kernels as torch ops, in AOTInductor packages and in cached graphs
epilogues                activations that a C++ kernel computes of its results
onnx_op, onnx_rule       C++ kernels as custom ops of ONNX Runtime, passes as rules of onnxscript
include                  headers and Triton functions for pass folders; the op of packed weights
codegen                  pass folders from Inductor's generated code
library                  judged passes, stored by content
"""
