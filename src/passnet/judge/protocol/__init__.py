"""What judge and worker share, and both import: the words they speak and the memory they map.

messages        what judge and worker say to each other: tagged records, decoded strictly
plain_text      text of a worker, made fit to be recorded and shown
channel         a socket that carries messages and file descriptors
shared_memory   inputs, outputs, and the page on which calls are timed
device          devices that graphs are judged on, as far as the judge has to know them
"""
