"""The command line: a file or a room for each group of commands, imported when they run.

commands                    the command `passnet`, its groups and its errors
terminal                    options from dataclasses, printing, exit codes, Ctrl-C
graph, profile              graphs and profiles
data                        captures and datasets
suite, bench                suites, runs
passes, judge               pass folders, the group of the judge's tests
library, library_results    judged passes, and what their commands share
agent                       authors
examples                    examples that ship, copied
optimize                    whole nets made faster
"""

from passnet.cli.commands import main

__all__ = ["main"]
