"""All that needs a GPU, in steps of at most eight minutes: `python -m benchmarks.gpu [STEP...]`.

steps      the steps in the order of their worth, each a row of commands that can be resumed
running    a step under its limit: what it finished, and where it goes on
agreement  the judge's times on a GPU against themselves and against CUDA's own
launches   kernels that really start, against the plan that is made without a GPU
"""
