"""Backends: compilers and runtimes for a whole net.

registry             all backends by name
backend              the interface of a backend; building and loading one
graphs               eager torch, the net's graph op by op, and the graph with passes
aot, dynamo          AOTInductor, torch.compile
low_bits             AOTInductor with weights in 8 or 4 bits
onnxruntime, openvino, runtimes   other runtimes, and what these share
onnx_passes          ONNX files of nets with passes
held_constants       constants of programs that are tensors of the net
in_child             work of foreign compilers in a child process
"""
