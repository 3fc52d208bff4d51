"""Nets to graphs.

net, capture, trace   one net traced by Dynamo
weights, constraints  weights without memory, and checks on captured graphs
catalog               nets by library or file, and selection by name
known_nets            names of nets, for shells
entry_capture         one catalog entry in this process
run, record, store    many entries into a folder, each in its own process, resumable
recapture, sampling   other sizes or dtypes, samples
mismatched_wheels     imports of libraries built for another torch
"""
