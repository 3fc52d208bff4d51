"""The command line: a file for each group of commands, which import what takes time when they run.

    commands, exits, interruption        the command `passnet`, its exit codes, Ctrl-C
    parser, fields, output               options from dataclasses, shared ones, printing
    extract, graph, profile              captures, graphs, profiles
    dataset, dataset_rows, dataset_files  datasets
    suite, bench, leaderboard            suites, runs, entries
    passes, judge, library               pass folders, the judge, judged passes
    agent, optimize, report              authors, whole nets, the site

Errors of passnet end a command with one sentence and an exit code of `exits`.
"""

from passnet.cli.commands import main

__all__ = ["main"]
