"""Backends: ways to run a whole net.

engines         the backends by name, most of them torch's own
graph_engine    Dynamo's graph, with or without passes, called without Dynamo
aot_passes      that graph as an AOTInductor program
other_runtimes  OpenVINO and ONNX Runtime
"""
