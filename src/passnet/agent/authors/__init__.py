"""Authors that are programs: a compiler that writes passes, and a search that improves them.

    compiler          what Inductor generates for the graphs of a task, written and made correct
    search            begins with what the compiler writes, varies it, and keeps what is faster
    lowered_ranges    ranges of a graph's ops that generated kernels can compute
    products          products of matrices by oneDNN's op
    float16_products  products of float16, computed in float32
    library_calls     calls of libraries, without what is around them
    eager_steps       ops in the steps in which eager torch computes them
    inductor_code     the code that Inductor generates for a graph, as data
    cpu_decisions     where Inductor is had to decide otherwise, for a CPU
    parameter_order   in which orders a pattern may get its arguments
    cpp_source        generated code as one C++ source
    triton_kernel     a generated Triton kernel, read
    launch_rules      blocks, programs and warps of a launch, by plain rules
    triton_source     generated code as one Triton source
    language          what differs between folders in C++ and in Triton
    leave_out         which passes to leave out where a folder is wrong
    folder_text       the pass folder of lowered ranges and their sources

What they write keeps the strict rules, and passes through the same judge as what an llm writes.
"""
