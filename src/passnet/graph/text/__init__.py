"""Graphs as files.

parse, syntax  the text of a `model.py` to a program, within limits
render         a program to that text
files, meta    graph directories and the metadata of their tensors
check          parse, round trip and run graph directories
"""
