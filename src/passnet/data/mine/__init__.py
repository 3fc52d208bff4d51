"""Graphs to subgraphs. No graph is run here.

folding, window_queue, repeats  classical subgraphs: Recursive Folding over a corpus
plateaus                        fusible subgraphs: Prefix Analysis
subgraphs, cut                  ranges of ops cut out as graphs of their own
dtypes, literals                the same subgraph in another dtype, with other literals
"""
