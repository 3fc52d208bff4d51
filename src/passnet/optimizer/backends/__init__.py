"""Backends: compilers and runtimes for a whole net.

backends      the backends by name, most of them torch's own
in_child      work of foreign compilers in a child process
dynamo_graph  Dynamo's graph, with or without passes, called without Dynamo, or as a program
runtimes      OpenVINO and ONNX Runtime
"""
