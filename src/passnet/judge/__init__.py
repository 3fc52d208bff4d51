"""The judge: runs reference and candidate in processes of their own, compares, and times them.

Two rules of trust hold everywhere in it. Expected values, the clock, the comparison and the verdict
live in the judging process, which runs no candidate code, does not import torch, and unpickles
nothing that a candidate wrote. And nothing that a worker says is evidence: its outputs are read
from outside it while it stands still, and its time is what the kernel says that it ran.

The story, in the order in which it is told:

    judge           one graph: reference and candidates compared, then timed together
    candidate       what is judged: a baseline or a pass folder, and how it is called
    settings        how graphs are judged: limits, tolerance, rules, how long to measure
    trial           the record of one candidate on one graph
    check           whether a candidate computes what the reference does, before it is timed
    fenced          the same with every tensor between pages without access, when it was timed
    compare         outputs against the reference's: form first, then values
    precision       how far outputs are from float64, beside eager torch's own
    findings        the catalogue of what can be found out about a candidate's honesty
    verdict         the one place that decides a trial, from findings, comparison and timing
    held_out        passes on shapes of their task that their author has not seen
    match_check     where the passes of a folder match, found out in a worker
    audit           the judge put to the test: exploits and honest passes
    doctor          what confines candidates on this machine, proven by trying
    limitations     what the judge does not cover, in words that every run records

Its rooms, from what is far from candidate code to what runs beside it:

    inspection      a pass folder read as text, before any of it runs
    timing          the clock, and what is looked at while it runs
    processes       sandbox, parents of workers, workers, the lock of a device
    protocol        what judge and worker share: messages, memory, names of devices
    worker          the only code here that imports torch, and runs beside candidate code
"""
