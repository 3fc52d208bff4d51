"""From graphs to subgraphs: which ranges of ops to cut, the cuts themselves, and their variants.

    folding        what repeats in a corpus of op sequences, as patterns and their ranges
    window_queue   which window to fold next, from one suffix array
    repeats        exact repeats of a sequence of integers: suffix array and common prefixes
    fusion         which ops Inductor computes in one kernel
    plateaus       fusible ranges, from the number of kernels of each prefix
    schedule       lowering by Inductor, stopped before code is made
    simulated_gpu  what Inductor asks of a GPU, answered without one
    attention      which kernel of a library computes an attention or a convolution on CUDA
    cut            a range of ops as a graph of its own
    subgraphs      the classical, fusible and single-op subgraphs of a graph
    dtypes         the same graph in another floating-point dtype
    literals       arguments of ops replaced, and the literals that follow a dtype
    cost           memory and operations of a graph, and whether its outputs are finite

No graph is run here but by `cost.finite_outputs`, on the CPU.
"""
