"""The language of answers: loop nests and arithmetic, in symbols of a prompt.

language, steps, symbols                   an answer as a tree
answer_text, grammar, index_grammar        an answer as text, and the words that may come next
prompt, range_memory, range_writer         a graph as a prompt, and a range as nests
teacher, indices, offsets                  Inductor's loops as answers
nest_printer, nest_values                  a nest printed, and the values that it computes
expand, cpp_text, cpp_calls, accumulators  an answer as C++ in a pass folder
run_answer, run_nest, torch_calls          an answer run by torch
"""
