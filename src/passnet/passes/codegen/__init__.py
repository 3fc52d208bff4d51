"""Pass folders from Inductor's generated code.

lowered_ranges                ranges of ops that generated kernels can compute
eager_steps                   ops in the rounding steps of eager torch
language                      differences between C++ and Triton folders
cpp_source                    generated C++ as one source
triton_source, triton_kernel  generated Triton as one source
launch_rules                  blocks, programs and warps of a launch
products, float16_products    matrix products by oneDNN
library_calls                 library calls without their surroundings
folder_text, parameter_order  the text of a pass folder and of its patterns
"""
