"""The loops form of an answer: what to fuse, loop nests and arithmetic, in symbols of a prompt.

language        an answer as a tree
answer_text     an answer as text, printed and parsed
symbols         the numbers of a graph as symbols
prompt          the prompt of a graph
grammar         which words may come next in an answer
index_grammar   which may come next in an index, so that it stays inside of its axis
indices         addresses as an index for each axis
inductor_loops  the loops that Inductor decides on, as data
range_memory    what the memory of a range is called, and how it lies
nest_values     what these loops compute, phase by phase
nest_printer    a nest in the language
range_writer    a range as nests
teacher         what the compiler author would answer
offsets         addresses as sums, with little division
steps           what steps name, read and put
cpp_calls       calls as C++
accumulators    reductions as C++
cpp_text        nests as C++
expand          an answer as a pass folder
torch_calls     calls on torch's tensors
run_nest        a nest run by torch
run_answer      an answer run by torch, to see that it is wrong
"""
