"""Profiles of the time that default compilation loses, on subgraphs and on whole nets.

draw                        the sample to profile
run, record                 items profiled in child processes, resumable
measure, eager_ops          the parts of a compiled call beside eager torch
move_kernels                loops that only move values, as kernels of their own
study                       conclusions from many profiles, and the worst op sequences
"""
