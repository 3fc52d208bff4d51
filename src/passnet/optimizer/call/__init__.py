"""The returned net and its checks.

fast_net                             a backend where a call fits it, else the original net
call_check, compiled_check, include  whether a call fits, in Python and in C++
built_backend                        one built backend for one input signature
net_call, net_copy, net_state          a net with its arguments, their copy, changes to its state
"""
