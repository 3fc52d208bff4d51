"""The judge: runs reference and candidate in processes of their own, compares, and times them.

What holds: expected values, the clock, the comparison and the verdict live in the judging process,
which runs no candidate code and unpickles nothing that a candidate wrote. Candidate code is
confined where the machine has a sandbox (`sandbox`), and inspected as text before it runs
(`static`). Every timed call has inputs of its own; outputs and inputs are looked at from outside
while the worker holds them (`clock`, `timed_worker`, `probe`). A crash, an endless loop, exhausted
memory or an early exit of a candidate is a status of its trial.

What does not hold is listed in `scope.NOT_COVERED`, and in every run: above all, candidate code
shares its process with the loop that calls it, machine code is not inspected, and a candidate may
read what the user may read.
"""
