"""Suites: tasks of graphs that candidates are measured on.

suite    tasks, content hashes, and keys to keep training data apart
shipped  the suites that ship
"""
