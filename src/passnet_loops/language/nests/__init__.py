"""Ranges of a graph as loop nests.

range_memory, range_writer  which values a range keeps, and its nests
nest_values, nest_printer   the values that a nest computes, and a nest printed
"""
