"""Where default compilation loses: the parts of its time, on many subgraphs and on whole nets.

draw           what is profiled: subgraphs drawn stratified, nets by name
record         what a profile leaves of one item, as data
compiled       the layers of a compiled call, each reachable
timed_program  the program that Inductor generated, with a clock around every kernel
moves          which loops of a generated kernel only move values
move_kernels   these loops as kernels of their own
clocks         what our clocks cost
rounds         ways to make a call, timed in turns
measure        the parts of a compiled call, beside eager torch
eager_ops      what of eager torch's time is dispatch
job            one item profiled, in a process of its own
run            many items: a record of each, resumable and in parts
study          what many profiles say together
tables         tables of that
page           a page and a figure of that
slow_suite     the op sequences that lose most, as a suite
"""
