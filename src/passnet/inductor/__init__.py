"""Everything that depends on the insides of torch's compilers.

compiler, graph_pass     Dynamo, Inductor and AOTInductor, called from elsewhere in passnet
schedule, simulated_gpu  lowering stopped before code generation, on a CPU or a simulated GPU
fusion, attention        ops fused into one kernel, and kernels that libraries provide
generated_code, loops    a graph's generated code, and its loops before that, as data
cpu_decisions            Inductor's CPU heuristics that we override
compiled_call            the layers of a compiled call
timed_program, clocks    a generated program with a clock around every kernel
moves                    loops of a generated kernel that only move values
"""
