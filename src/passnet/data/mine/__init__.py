"""Graphs to subgraphs. No graph is run here.

folding, window_queue, repeats  classical subgraphs: Recursive Folding over a corpus
subgraphs, cut                  ranges of ops, fusible ones included, cut out as graphs
dtypes, literals                the same subgraph in another dtype, with other literals
"""
