"""A match replaced in its graph.

rewrite, write_back      the replacement call, and the writes that it must repeat
custom_op, written_call  replacements as ops for Inductor, and the text of their arguments
packed_op                the C++ ops of weights that are packed once
packed_products          products and convolutions by such weights, for Inductor
packed_recurrent         recurrent layers by them
written_attention, axes  attention that a net writes out, and the axes of its tensors
flash_attention          one call of torch's kernel in its place
guarded_call             replacements behind our own checks
first_call               the first result of a replacement compared with the original ops
op_observer              the torch ops that a replacement uses
"""
