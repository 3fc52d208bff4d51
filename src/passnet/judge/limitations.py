"""The known gaps of the judge, in sentences that every run records."""

NOT_COVERED = (
    "Candidate code shares its process with the loop that calls it: it can falsify its "
    "worker's reports (matches, torch ops seen), but not the judge's reading, comparison and "
    "timing.",
    "Native code can replace objects and machine code of Python in its own process and leave "
    "the loop in place: Python's own time for a call, 1 to 3 microseconds, is not protected.",
    "Where the kernel does not tell the place at which a process has stopped, a loop that is "
    "taken over is not named.",
    "All calls of a burst are known when it begins: code that does several of them at once "
    "saves the start of each, and every call but the first finds its code in the cache.",
    "The names of torch ops, and how many a rewritten graph needs, are the worker's account. "
    "Under strict rules all that torch computes is counted, but in memory that native code of the "
    "candidate could find and change.",
    "Machine code that a folder brings ready-made is not inspected, and a kernel that computes "
    "with a library that it finds in the process, or enters torch below its dispatcher by an "
    "address, cannot be told from one that computes by itself.",
    "Names that native code puts together while it runs are not seen.",
    "Under open rules, torch ops in threads other than the one that calls the graph are not seen.",
    "On other processors than x86-64, and without g++, torch's ops are not counted: strict rules "
    "then rest on the inspection and on observed calls.",
    "A candidate may read all files that the user may read.",
    "Cores are not limited: threads that end before the measurement does are not counted, "
    "though their time is part of the measured time.",
    "Programs beside a measurement still slow it by the shared caches, memory and clock rate; "
    "if the reference then differs from itself, trials are unstable and in no score.",
    "Two sandboxes can signal to each other by shared resources, as caches, cached files and "
    "the load of processors; the inputs of one of them are of no use to the other.",
    "The time that a way of calling takes by itself is a floor: code that replaces the call gains "
    "what an honest call takes beyond that, a fifth of the smallest ones.",
    "In most bursts that are checked, a few random places of two calls are read: work that "
    "leaves out a hundredth of its output in all turns but the last, whose number it would "
    "have to foresee, escapes with a chance of about one in thirteen in the shortest "
    "measurement (one in four where calls take 20 ms and more), and of one in three hundred "
    "thousand in the longest.",
    "Half of the bursts are not checked. Work that is left out in one call in ten escapes "
    "with a chance of one in thirty in the shortest measurement, and gains a tenth; if it is "
    "named once, the whole trial is worth nothing.",
    "One burst of a measurement is held to its end: a candidate that asks whether its outputs are "
    "still in use, and reuses only others, is not told from an allocator.",
    "In timed calls on extreme and structured inputs, every error within a thousandth of the "
    "value, and four times the largest that is forgiven anywhere in an output, is forgiven.",
    "A short cut that fails on none of the structures is not seen; large graphs have one "
    "structured set only.",
    "In the run between pages without access, reads of up to 63 bytes behind a tensor that "
    "change nothing are not seen, nor are accesses beyond memory that torch has not "
    "allocated, as a kernel's own or numpy's; code that recognises that run can behave in it.",
    "On a GPU, and where the fence cannot be compiled, there is no run between pages without "
    "access.",
    "Inputs are contiguous, whatever their strides were in the net.",
    "Integers that an op restricts, as a number of repeats or a divisor, keep their recorded "
    "values and only change places: if all are equal, every call has the same.",
    "On a GPU the worker itself copies arguments and outputs, waits for the device and "
    "flushes its cache: code that takes this over gains a warm cache, or hides work that "
    "takes up to the time of copying the arguments, plus ten microseconds, or a quarter of "
    "the time of copying the outputs, plus five.",
    "On a GPU no physical floor is measured, and the device goes on with its work while its "
    "worker stands still: kernels that keep running between bursts are not seen.",
)
"""One sentence a gap; `docs/judging.md` and `run.json` have the same."""
