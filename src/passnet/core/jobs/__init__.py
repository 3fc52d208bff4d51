"""Work on many items: child processes with limits, local and Ray executors, resumable runs.

process, children         one function on one payload in a child process with limits
overtime                  a limit on the time of a call in this process
executors, actors         many items on local workers or on Ray actors
ray_cluster               the cluster that these join, or start
run_plan                  how a run is worked off: resume, parts, executor, workers
run_folder, folder_lock   a run on disk: settings, records, resume, one writer at a time
"""
