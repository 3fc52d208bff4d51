"""The values that flow through a graph.

fake, fake_limits  the shape of every value from a run under fake tensors
inputs             input values: as recorded, fresh or extreme
structured         input values with a structure on which shortcuts fail
effects            calls that write into an argument or share its memory
uses               requirements that a graph's ops put on each argument
cost               memory and operations of a graph
"""
