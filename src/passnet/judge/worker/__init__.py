"""Code that runs beside candidate code: the only room of the judge that imports torch.

Nothing that happens here is evidence.

warm, zygote  processes that have imported torch: one forks parents of workers, they fork workers
worker        the graph under one candidate, called when the judge says so
aoti_package  a package of AOTInductor: built, cached, and called
heap          the heap of a worker, made alike for all before it is timed
fence         pages without access around tensors, in a run that is not timed
op_counter    the ops that torch computes, counted under strict rules
arguments     the arguments of a worker: in shared memory, or on a device
float64       the graph in float64; run by the reference alone
work          the least work of a graph: operations, and bytes of arguments that are read
rates         the rates of the machine: a program of its own
"""
