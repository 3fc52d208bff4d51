"""What calls do outside of a net and its outputs.

original    the net of the user, into which a copy of it may write
quiet       warnings and logs of this thread, silenced
watched     files, processes, connections, logs and prints of a call of this thread
"""
