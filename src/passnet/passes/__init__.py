"""Passes: load them, match their patterns, rewrite graphs, plug them into torch.compile.

folder        what a pass folder holds, without running any of it
load          import the passes of a folder, which runs its code
trace         record what `pattern` and `replacement_args` call, in-place operators as such
pattern       a traced pattern, ready to be searched for, and the pass that it belongs to
signatures    names, defaults and types of the parameters of torch's functions and methods
normalise     one form for every way to write a call
graph_index   the calls of a graph by what they call, and which values may share memory
guards        what a pass demands of the tensors that it is applied to, in words
example_values  dtypes, shapes and strides of a graph's values, as guards see them
matched       one match: what stands for what, its ends, and what depends on it
match         the search for a pattern: every match, or the nearest miss
legality      the rules by which a match may be replaced
write_back    how the writes of a match into values from outside are made after it is replaced
rewrite       put a call of the replacement in the place of every match
backend       `torch.compile(net, backend="passnet")`
library       a library of judged passes as it is read, and which of them fit a machine
hardware      what times depend on besides the code: processor or card, threads, torch
first_call    what a replacement returns first, against what the original ops return
custom_op     replacements as ops of torch, for Inductor to compile around
guarded_call  a rewritten graph behind checks of our own, without torch.compile
op_observer   which torch ops a replacement uses
compilation   C++ compiled with one call of g++, cached by content
cpp           C++ kernels for authors of passes: what they take, and their calls
kernel_op     C++ kernels as ops of torch, which a tracer sees
kernel_shims  C++ kernels as a package of AOTInductor calls them
include       the headers that C++ may include; Triton functions that pass folders get copies of
"""
