"""The judge's processes: what confines them, who forks them, and how they are spoken to.

sandbox           confinement of the processes that run candidate code
confine           the file system and session of a confined process, made inside its namespaces
restrict          what the kernel refuses a confined worker: system calls, files in /proc
worker_process    one forked worker, seen from outside: its messages, its memory, its end
worker_parent     the process that forks workers
parent_pool       the parents of a run, trusted or sandboxed, and the fence library
loaded_worker     prepared graphs, and one worker that calls one of them for a candidate
device_lock       one measurement at a time on a device, over all processes of the machine
standstill        a worker that stands still but for its turn, and what it ran then
"""
