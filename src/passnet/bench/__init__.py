"""Runs of candidates over suites, and the study of default compilation.

run, run_record       every candidate on every graph, recorded trial by trial
cluster, environment  Ray clusters, and the hardware and versions of a run
scores, groups        scores of runs, and groups of graphs that a candidate wins or loses
published             scores that others published, which no trial here stands behind
in_nets, shares       passes in the nets that their tasks came from, and the tasks' shares of nets
profiling             the parts of a compiled call's time
"""
