"""Work on many items: child processes with limits, local and Ray executors, resumable runs.

process, lifetime, python  one function on one payload in a child process with limits
executors, actors          many items on local workers or on Ray actors
run_folder, folder_lock    a run on disk: settings, records, resume, one writer at a time
shards                     parts of a divided run
busy_cores                 processes that spin to keep a machine busy
cache                      the folder for files kept between processes
"""
