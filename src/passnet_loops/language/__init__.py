"""The language of answers: loop nests and arithmetic, in symbols of a prompt.

language, symbols                    an answer as a tree
answer_text, grammar, index_grammar  an answer as text, and the words that may come next
prompt, nests                        a graph as a prompt, and a range as nests
teacher, indices                     Inductor's loops as answers
expand, cpp                          an answer as C++ in a pass folder
run_answer, run_nest, torch_calls    an answer run by torch
"""
