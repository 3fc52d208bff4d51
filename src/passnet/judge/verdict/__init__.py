"""From outputs and times to a verdict.

check               outputs of a worker checked against expected ones
hard_set            expected results on extreme and structured inputs, and errors forgiven there
compare, precision  tensors compared, and precision that was lost
findings, verdict   what was found, and the trial that follows
"""
