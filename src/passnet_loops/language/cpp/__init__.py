"""An answer as C++.

cpp_text, cpp_calls         nests and calls printed
steps, offsets              the index of each access
accumulators                reductions
"""
