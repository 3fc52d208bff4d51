"""Nets to graphs.

net, capture, trace, backward        one net traced by Dynamo, and the graph of its gradients
weights, constraints                 weights without memory, and checks on captured graphs
catalog, entry_selection             nets by library, and names and patterns that select them
entry_capture, capture_job           one catalog entry, in this process or in a child
run, record, store                   many entries into a folder, resumable
recapture, sampling, domain          other sizes or dtypes, samples, domains of nets
torchvision_ops, torchaudio_library  libraries built for another torch
"""
