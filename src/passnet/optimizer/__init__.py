"""Whole nets made faster: every way to run a net is built, checked, timed, and the best returned.

optimize        the story: for each form of inputs all ways are tried, and the best is kept
settings        how: the ways that are tried, for how long, and what is promised of the net
form            all ways for one form of inputs: built, compared, timed, one chosen
record          what an optimisation leaves behind, as data
tables          tables of that
page            an HTML page of that
page_blocks     on it, the blocks of the net, and what was replaced in each
page_passes     on it, the ranges, and the trials and sources of their passes
page_style      its style
page_text       how texts and figures stand on it
replaced        which ops of each block were replaced, and what that saves
kept_passes     the judged passes of a net, kept with their trials
blocks          the modules within a net: how long they take, and which ops are theirs
package         an optimised net on disk, and how it is had back
net_call        a net and a call of it: what ways are built from and compared with
entry           one way to run a net on inputs of one form
engines         the ways there are, most of them torch's own
graph_engine    the graph that Dynamo finds, rewritten by passes or not, without Dynamo
other_runtimes  OpenVINO and ONNX Runtime, where they are installed
aot_passes      that graph with passes, as a program for AOTInductor
fresh_values    other arguments of the same form, hostile ones too
index_bounds    between which whole numbers indices among the arguments may lie
agreement       whether a way returns what eager torch does
interleaved     several ways to make one call, timed in turns
net_state       what a net was like, and what of it has changed since
call_check      whether a call fits an entry, and why not
compiled_check  the same in C++, in a few microseconds
include         that C++
fast_net        the net that is returned: an entry where a call fits it, else the net as it was
chosen_passes   the passes for one form of inputs, chosen, and put where ways look for them
pass_choice     the passes for a net: looked up or written, and the set that saves most
ranges          the ranges of a net's ops that passes may replace
judging         passes for one range, written by an author or given, and judged
llm_author      the same, written by an llm
library         judged passes, kept, merged and exported
verification    the passes of a library, judged again
selection       which of several overlapping spans to replace
"""
