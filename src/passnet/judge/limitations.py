"""What the judge does not cover, in words that every run records."""

from __future__ import annotations

NOT_COVERED = (
    "Candidate code shares its process with the loop that calls it: it can falsify what its worker "
    "says (matches, torch ops seen), though not what the judge reads, compares and times.",
    "Native code that takes over that loop can work while the judge writes inputs and lets the "
    "worker read them: up to twice the time of one read, and ten microseconds, go unnoticed.",
    "Native code that asks torch for the state of its thread can tell a call in which torch ops "
    "are observed; from the calls that are audited nothing tells it.",
    "Machine code is not inspected: a kernel that computes with a library it finds in the process "
    "is not told from one of its own.",
    "Ops of torch in other threads than the one that calls the graph are not seen.",
    "A candidate may read what the user may read.",
    "Root's processes are not limited in number.",
    "Cores are not limited: threads that are gone when the measurement ends are not counted.",
    "A candidate that keeps the machine busy makes its own trials unstable, which takes them out "
    "of the score; they are counted beside it.",
    "Where several tasks are got ready at a time, a candidate that leaves a thread running in one "
    "can slow what is timed in another; the thread is found where it runs.",
    "Of an ordinary call a few random places are looked at: work that leaves out a hundredth of an "
    "output in all calls but the audited ones escapes with a chance of one in three thousand.",
    "Inputs are contiguous, whatever their strides were in the net.",
    "On a GPU the worker itself copies arguments and outputs, waits for the device and flushes its "
    "cache: code that takes that over gains what a warm cache gives, or hides work up to a quarter "
    "of the time it takes to copy the outputs, and five microseconds.",
    "On a GPU no physical floor is measured, and kernels that go on between calls are not seen.",
)
"""One sentence each; `docs/judging.md` and `run.json` have the same."""
