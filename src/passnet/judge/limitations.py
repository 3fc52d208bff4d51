"""What the judge does not cover, in words that every run records."""

NOT_COVERED = (
    "Candidate code shares its process with the loop that calls it: it can falsify what its worker "
    "says (matches, torch ops seen), but not what the judge reads, compares and times.",
    "Native code that takes over that loop can work while the judge writes inputs and lets the "
    "worker read them: up to twice the time of one read, plus ten microseconds, goes unnoticed.",
    "Native code that asks torch for the state of its thread can recognise a call in which torch "
    "ops are observed; nothing distinguishes the calls that are audited.",
    "Machine code is not inspected: a kernel that computes with a library it finds in the process "
    "cannot be told from one that computes by itself.",
    "Torch ops in threads other than the one that calls the graph are not seen.",
    "A candidate may read whatever the user may read.",
    "Processes of root are not limited in number.",
    "Cores are not limited: threads that have ended before the measurement does are not counted.",
    "A candidate that keeps the machine busy makes its own trials unstable, which takes them out "
    "of the score; they are counted beside it.",
    "Where several tasks are prepared at a time, a candidate that leaves a thread running in one "
    "can slow down what is timed in another; the thread is found in the task where it runs.",
    "In an ordinary call only a few random places are read: work that leaves out a hundredth of an "
    "output in all calls but the audited ones escapes with a chance of one in three thousand.",
    "Inputs are contiguous, whatever their strides were in the net.",
    "Whole numbers that an op may not take any value of, as a number of repeats or a divisor, keep "
    "their recorded values and only change places: where all are equal, every call has the same.",
    "On a GPU the worker itself copies arguments and outputs, waits for the device and flushes its "
    "cache: code that takes this over gains what a warm cache gives, or hides work that takes up "
    "to a quarter of the time of copying the outputs, plus five microseconds.",
    "On a GPU no physical floor is measured, and kernels that keep running between calls are not "
    "seen.",
)
"""One sentence each; `docs/judging.md` and `run.json` have the same."""
