"""Backends: compilers and runtimes for a whole net.

backends      the backends by name, most of them torch's own
dynamo_graph  Dynamo's graph, with or without passes, called without Dynamo
aot_passes    that graph as an AOTInductor program
runtimes      OpenVINO and ONNX Runtime
"""
