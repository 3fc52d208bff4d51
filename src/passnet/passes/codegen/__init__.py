"""Pass folders from Inductor's generated code.

kernel_text                 a kernel's text in C++ or Triton, and its calls: begin here
cpp_source                  generated C++ as one source
triton_source               generated Triton as one source
triton_kernel               a generated Triton kernel read, and its launch
lowered_ranges              ranges of ops that generated kernels can compute
eager_steps                 ops in the rounding steps of eager torch
products, library_calls     products by faster ops, library calls without their surroundings
folder_text, pass_text      the text of a pass folder, and of a pass and its pattern
"""
