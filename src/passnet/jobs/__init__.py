"""Work on many items: where it runs, within which limits, and how a run of it goes on after a kill.

process      one function on one payload in a process of its own, with limits
executors    many items: by workers on this machine, or on a Ray cluster
actors       many items: by actors of a Ray cluster that own a device each
run_folder   the folder of a run: what it was begun with, its records, how it resumes
shards       the parts of a run that is divided
folder_lock  the lock that keeps a second run out of that folder
lifetime     processes that end when their parent does, or when it says so
load         processes that spin, to make a machine busy
cache        where what is kept between processes lies
python       how this package starts Python for its own processes
"""
