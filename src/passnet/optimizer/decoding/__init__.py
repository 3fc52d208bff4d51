"""Decoding by LLMs of transformers, one optimised step behind `generate`.

step       a decoder as a net of flat tensors, and its attention over past and new keys
fused_attention  that attention as one op, for steps in fewer bits
step_plan  sizes and arguments for which a step is compared and timed
caches     the user's own caches, read and updated in place
dispatch   calls of the decoder, as steps
proof      steps return what calls return
encoder    the encoder of an encoder-decoder, which runs once
"""
