"""Nets to graphs.

net, capture, trace         one net traced by Dynamo
weights, constraints        weights without memory, and checks on captured graphs
catalog                     nets by library or file, and selection by name
entry_capture, capture_job  one catalog entry, in this process or in a child
run, record, store          many entries into a folder, resumable
recapture, sampling         other sizes or dtypes, samples
mismatched_wheels           imports of libraries built for another torch
"""
