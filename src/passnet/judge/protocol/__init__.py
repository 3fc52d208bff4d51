"""Messages and memory that judge and worker share; both import this room.

messages        the messages: tagged records, decoded strictly, their texts made plain
channel         a socket that carries messages and file descriptors
shared_memory   inputs, outputs, and the control page of timed calls
op_counts       the counted torch ops of a strict worker, and their budget
device          the devices that graphs are judged on
"""
