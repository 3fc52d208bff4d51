"""The command line: a file for each group of commands, which import what takes time when they run.

    commands       the command `passnet`, its groups, and the exit code of each error
    exits          exit codes, and how a command fails
    interruption   Ctrl-C and SIGTERM: what is kept, how to go on
    options        options and arguments that several commands share
    output         how commands print tables, JSON and notes
    extract        `passnet extract`
    dataset        `passnet dataset merge|build|sample`
    dataset_rows   `passnet dataset query|stats|show`
    dataset_files  `passnet dataset verify|export|import`
    dataset_split  `passnet dataset split|leaks`
    graph          `passnet graph check|show`
    suite          `passnet suite make|list|show|check`
    passes         `passnet pass check`
    bench          `passnet bench run|score|show`
    score          `passnet score sensitivity`
    optimize       `passnet optimize`
    profile        `passnet profile`
    judge          `passnet judge audit|attack|doctor`
    agent          `passnet agent run|stats|export|harbor`
    train          `passnet train data|sft|rl|evaluate`
    library        `passnet library list|show|verify|merge|export|remove`
    report         `passnet report`
    leaderboard    `passnet leaderboard add|verify`

Errors of passnet end a command with one sentence and an exit code of `exits`.
"""

from passnet.cli.commands import main

__all__ = ["main"]
