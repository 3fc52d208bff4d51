"""Graphs as data: parse, print, identify, build and feed them; nothing of their files is executed.

    spec         the data model: a straight-line program, and what its arguments hold
    operators    Python's operator syntax and the names of the functions it stands for
    syntax       syntax trees of untrusted text, within limits
    arguments    the arguments of a call: references and literals
    parse        text of a `model.py` to a program
    render       a program back to that text
    meta         what a meta file says of each argument, and the limits of it
    files        graph directories, and the texts of a row
    canonical    op sequence, canonical form and fingerprints
    effects      which calls write into an argument, or share memory with one
    device       the same graph on another device
    targets      the allow-list of what a graph may call
    build        a program to a `torch.fx.GraphModule`
    from_fx      a `torch.fx.Graph` to a program
    from_tensor  what is recorded of a tensor
    fake         the shape of every value, by a run under fake tensors
    fake_limits  what such a run may compute
    uses         what the ops of a graph expect of each argument
    inputs       values for the arguments: as recorded, fresh or extreme
    check        whether graph directories parse, round-trip and run

Parsing, printing and identifying graphs need no torch: what needs it imports it when it is called,
or is one of `from_fx`, `from_tensor` and `fake_limits`.
"""
