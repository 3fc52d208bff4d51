"""The text of a pass folder, inspected before any of it runs.

inspection          the findings of a folder
rules               the meaning of every name in use, as data; names that compute
sources             the modules of a folder, read but not run, and the scope of each node
matched             code that only patterns use
native              native code as its compiler reads it
names               the dotted path of each expression
excuses             uses of names that are no finding in their context
bindings            the names that statements bind
inspected_folders   the findings of the folders of a run, each in a limited process, once
"""
