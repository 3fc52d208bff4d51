"""Authors of passes.

compiler                                     Inductor's kernels, corrected until they pass
search                                       variations of the compiler's pass, the fastest kept
programs                                     programs by name, with those of other packages
inspect_task, inspect_llm, inspect_registry  LLMs through Inspect
inspect_asking                               their limits and endpoints, at each request
scripted_llm, scripts                        an LLM that plays back a written trajectory
"""
