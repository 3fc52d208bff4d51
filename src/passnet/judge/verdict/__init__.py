"""From outputs and times to a verdict.

check               outputs of a worker checked against expected ones
compare, precision  tensors compared, and precision that was lost
findings, verdict   what was found, and the trial that follows
"""
