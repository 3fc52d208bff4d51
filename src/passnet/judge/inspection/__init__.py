"""A pass folder read as text, before any of it runs: what its code uses that the rules name.

inspection          the findings of a folder: what each node of its text uses
rules               what the use of a name means, as data
sources             the modules of a folder, read but not run, and the scope of each node
tensor_names        the attributes of tensors: those that compute, and the others
names               what dotted path each expression stands for
excuses             what is no finding by its context
bindings            what the statements bind to names
inspected_folders   the findings of the folders of a run, each in a limited process, once
"""
