"""The returned net and its checks.

fast_net, dispatch                   a backend where a call fits it, else the original net
call_check, compiled_check, include  whether a call fits, in Python and in C++
net_call, values, sizes              a net with its arguments, outputs and backends
effects, foreign_tensors             writes, random draws and attributes that a call moves
weight_file                          weights of a large net, for children
net_state, held_objects, attributes  changes to its state, what attributes hold, and as text
process_state                        settings of the process, put back
"""
