"""Graphs as data: a straight-line program and its tensors. Nothing in a graph is executed.

spec, arguments  the data model of programs and calls, and a graph moved to another device
canonical        op sequence, canonical form and fingerprints
text             graphs as files: parse, render, check
fx               graphs as torch.fx modules, and the allow-list of targets
values           shapes, inputs, side effects and cost of a graph's values
"""
