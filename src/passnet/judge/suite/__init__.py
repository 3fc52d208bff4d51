"""Suites: tasks of graphs that candidates are measured on.

suite                          tasks, content hashes, and keys to keep training data apart
selection, balance, assembly   a suite made of a dataset
admission, wrong_programs      graphs on which wrong programs fail
soundness                      graphs whose answers are numbers that do not hang on rounding
"""
