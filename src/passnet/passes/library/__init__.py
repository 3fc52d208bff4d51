"""A library of judged passes; its judge is an argument.

entries         entries read from disk, and the passes that win on a machine
store           passes added, merged, exported, removed and judged again
foreign         libraries of strangers, checked before they are judged
kernels_layout  libraries as repositories of Hugging Face's `kernels`
"""
