"""Runs of candidates over suites, the leaderboard, and the study of default compilation.

run, run_record       every candidate on every graph, recorded trial by trial
cluster, environment  Ray clusters, and the hardware and versions of a run
scores, groups        scores of runs, and groups of graphs that a candidate wins or loses
leaderboard           runs as entries, checked and judged again
profiling             the parts of a compiled call's time
"""
