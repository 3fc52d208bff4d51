"""Whole nets made faster: every way to run one is built, checked and timed, the best returned.

entry          one way to run a net on inputs of one form
net_state      what a net was like, and what of it has changed since
call_check     whether a call fits an entry, and why not
compiled_check  the same in C++, in a few microseconds
include        that C++
fast_net       the net that is returned: an entry where a call fits it, else the net as it was
"""
