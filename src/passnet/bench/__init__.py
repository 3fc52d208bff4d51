"""Runs of candidates over suites, the leaderboard, and the study of default compilation.

run, run_record, files  every candidate on every graph, recorded trial by trial
cluster, environment    Ray clusters, and the hardware and versions of a run
scores                  scores of run folders
groups                  graphs on which a candidate wins or loses
leaderboard             runs as entries, checked and judged again
profiling               the parts of a compiled call's time
"""
