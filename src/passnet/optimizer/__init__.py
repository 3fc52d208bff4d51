"""Whole nets made faster.

optimize, settings        the story: every backend built, compared, timed, the best kept
tune, trial               the same for one input signature, and for one backend
record, package           what an optimisation leaves behind, and the net on disk
size_times, blocks        times at several sizes; of the modules within a net
backends                  compilers and runtimes for a whole net
compare                   agreement with eager torch, and timing side by side
call, outside             the returned net: checks at each call; what calls do besides
choose                    passes for the ranges of a net
decoding                  LLMs of transformers, a step behind `generate`
"""
