"""The command line: a file for each group of commands, which import what takes time when they run.

    commands, exits, interruption        the command `passnet`, its exit codes, Ctrl-C
    options, output                      shared options, and how commands print
    extract, graph, profile              captures, graphs, profiles
    dataset, dataset_rows, dataset_files, dataset_split  datasets
    suite, bench, leaderboard            suites, runs, entries
    passes, judge, library               pass folders, the judge, judged passes
    agent                                authors
    optimize                             whole nets
    report                               the site

Errors of passnet end a command with one sentence and an exit code of `exits`.
"""

from passnet.cli.commands import main

__all__ = ["main"]
