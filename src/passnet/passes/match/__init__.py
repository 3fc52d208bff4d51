"""The search for a pattern in a graph.

trace, pattern         `pattern` and `replacement_args` recorded as a graph, and matches
signatures, normalise  one form for every way to write a call
graph_index            a graph's calls by target, and values that may share memory
activations            activations that follow another call
match                  every match, or the nearest miss
guards                 conditions on the matched tensors
legality               the rules that allow a replacement
"""
