"""Messages and memory that judge and worker share; both import this room.

messages        the messages: tagged records, decoded strictly, their texts made plain
channel         a socket that carries messages and file descriptors
shared_memory   inputs, outputs, and the control page of timed calls
device          the devices that graphs are judged on
"""
