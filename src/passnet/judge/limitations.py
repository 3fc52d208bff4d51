"""The known gaps of the judge, in sentences that every run records."""

NOT_COVERED = (
    "Candidate code shares its process with the loop that calls it. It can falsify its "
    "worker's reports (which passes matched, which torch ops ran), but not what the judge "
    "itself reads, compares and times.",
    "Native code can replace Python objects and machine code in its own process and leave the "
    "loop in place. It can thus save the 1 to 3 microseconds that Python needs for a call.",
    "If Linux does not tell where a process was stopped, the judge does not notice that the "
    "loop was replaced.",
    "A worker knows all calls of a burst when the burst begins. Code that runs several of "
    "them at once saves the overhead of starting each, and all calls but the first find their "
    "code in the cache.",
    "The worker itself reports the names of torch ops and how many a rewritten graph needs. "
    "Under strict rules the judge counts all that torch computes, but the counter lies in "
    "memory that the candidate's native code could find and change.",
    "The judge does not inspect prebuilt machine code in a folder. It cannot tell a kernel "
    "that does its own work from one that uses a library found in the process, or that enters "
    "torch by an address below the dispatcher.",
    "The inspection does not see names that native code assembles at run time.",
    "Under open rules, the judge sees torch ops only in the thread that calls the graph.",
    "Without g++, and on processors other than x86-64, torch's ops are not counted. Strict "
    "rules then rest on the inspection and on the observed calls.",
    "A candidate may read every file that the user may read.",
    "The number of cores is not limited. Threads that end before the measurement does are not "
    "counted, though their time is part of the measured time.",
    "Other programs still slow a measurement down through shared caches, memory and clock "
    "rate. If the reference then differs from itself, its trials are unstable and enter no "
    "score.",
    "Two sandboxes can signal to each other through shared resources such as caches, cached "
    "files and processor load. All workers of a turn get the same inputs, but run one after "
    "another, so a second candidate could only reuse what a first one leaves in a shared "
    "cache.",
    "The overhead of a way of calling is a floor. Code that replaces the call gains the time "
    "that an honest call takes beyond the floor, which is a fifth of the smallest calls.",
    "In most checked bursts the judge reads a few random elements of two calls. A candidate "
    "may leave out a hundredth of its output in every turn but the last. If it guesses which "
    "turn is the last, it escapes with a chance of about one in thirteen in the shortest "
    "measurement (one in four if calls take 20 ms or more), and of one in three hundred "
    "thousand in the longest.",
    "Half of the bursts are not checked. A candidate that skips the work of one call in ten "
    "gains a tenth, and escapes with a chance of one in thirty in the shortest measurement. "
    "If it is caught once, the whole trial is worth nothing.",
    "The judge holds the outputs of one burst to its end. It cannot tell a candidate that "
    "asks whether its outputs are still in use, and reuses only the others, from an "
    "allocator.",
    "In timed calls, except those on recorded inputs, the judge forgives every error within a "
    "thousandth of the value. On extreme and structured inputs it also forgives four times "
    "the largest error that it forgives anywhere in the output.",
    "Code that runs when the loop lets go of an output is not timed. It can put constant "
    "parts of an output, such as padding, back into a buffer that the judge has marked.",
    "Timed inputs in bfloat16 that hold a zero or a denormal, and those of few different "
    "values, are those of the comparison in another order. Code that recognises them can look "
    "its answers up.",
    "The number of calls of a burst follows the slowest candidate of a turn. One that is slow "
    "at first leaves all of them short bursts with a cold start.",
    "A shortcut that fails on none of the structured inputs is not seen. Large graphs have "
    "only one structured set.",
    "In the run between inaccessible pages, the judge does not see reads of up to 63 bytes "
    "behind a tensor that change nothing. It does not see accesses beyond memory that torch "
    "did not allocate, such as a kernel's own or numpy's. Code that recognises this run can "
    "behave in it.",
    "On a GPU, and where the fence cannot be compiled, there is no run between inaccessible pages.",
    "Inputs are contiguous, whatever their strides were in the net.",
    "Integers that an op restricts, such as a number of repeats or a divisor, keep their "
    "recorded values and only change places. If all are equal, every call gets the same ones.",
    "On a GPU the worker itself copies arguments and outputs, waits for the device and "
    "flushes its cache. Code that replaces these steps gains a warm cache, or hides work: as "
    "much as the arguments take to copy plus ten microseconds, or a quarter of what the "
    "outputs take to copy plus five.",
    "On a GPU no physical floor is measured. The device continues while its worker is "
    "stopped, so kernels that keep running between bursts are not seen.",
)
"""One gap an entry; `docs/judging.md` and `run.json` have the same."""
