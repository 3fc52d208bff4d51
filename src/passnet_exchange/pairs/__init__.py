"""Pairs of a reference and a candidate, each in a file of its own, as KernelBench writes them.

problem          a reference's file as a graph
problem_capture  the capture in a limited process: the only file that runs others' code
binding          how a candidate is called on a graph's arguments
module           that call, in the sandbox of the candidate
constants        a file's sizes, made smaller
pair             a candidate judged against a reference
kernelbench      a suite of the problems of a checkout
command          the commands
"""
