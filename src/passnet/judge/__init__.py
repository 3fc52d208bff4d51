"""The judge: runs reference and candidate in processes of their own, compares, and times them.

What holds: expected values, the clock, the comparison and the verdict live in the judging process,
which runs no candidate code and unpickles nothing that a candidate wrote. A crash, an endless loop,
exhausted memory or an early exit of a candidate is a status of its trial.

What does not hold yet: a worker is a plain process of the same user, with limits on memory and time
but without confinement; the code of a pass is not inspected; a candidate that answers before it has
worked is caught only where its output is checked.
"""
