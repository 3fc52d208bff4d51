"""The judge's processes: their sandbox, their parents, and their conversation with the judge.

sandbox, confine   the sandbox of processes that run candidate code; its file system and session
restrict, starts   what a sandboxed worker is refused: system calls, files; and new processes
worker_process     one forked worker, seen from outside: its messages, its memory, its end
worker_parent, warm_process   the processes that fork workers, and their parents
parent_pool        the parents of a run, trusted or sandboxed, and the fence library
loaded_worker      prepared graphs, and one worker that calls one of them for a candidate
device_lock        one measurement at a time on a device, over all processes of the machine
standstill         a worker that stands still but for its turn, and its CPU time meanwhile
machine_rates      the rates of this machine, measured once and kept
census             all processes of a sandbox, with their memory and CPU time
"""
