"""The returned net and its checks.

fast_net                             a backend where a call fits it, else the original net
call_check, compiled_check, include  whether a call fits, in Python and in C++
net_call, net_state                  a net with its arguments and backends, changes to its state
"""
