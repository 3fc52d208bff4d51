"""One name for each meaning: every option of every command is in the table of meanings."""

from collections import defaultdict

from tests.cli.test_help import commands, options_of

MEANINGS = {
    "--dynamic": "sizes that vary from call to call",
    "--precision": "a lower precision that is allowed",
    "--allowed-error": "a relative error that is allowed",
    # how a run is worked off, and where
    "--out": "place of the result",
    "--resume": "go on with a run",
    "--retry": "repeat failed items of a run",
    "--shard": "part of a run to work on",
    "--with": "folders of other parts to take over",
    "--executor": "local processes or Ray",
    "--jobs": "items at a time",
    "--budget": "time after which nothing new begins",
    "--timeout": "most seconds of an item",
    "--memory": "most MiB of a process",
    "--limit": "most items",
    "--work": "place of intermediate results",
    "--seed": "seed of random choices",
    "--input-seed": "seed of inputs that a trial records",
    "--seconds": "seconds of a measurement",
    "--repeats": "most measurements of an item",
    "--again": "measure though it is known",
    "--device": "device that graphs run on",
    "--threads": "threads of torch",
    # output
    "--json": "print JSON",
    "--csv": "print CSV",
    "--wide": "print all columns",
    "--verbose": "print more",
    "--page": "Markdown page of the result",
    "--figure": "figure of the result",
    "--svg": "folder of pictures of graphs",
    "--times": "draw times of ops",
    "--fusion": "draw what Inductor fuses",
    "--title": "headline of a site",
    "--list": "only print the choices",
    "--columns": "columns to print",
    "--name": "name of the result",
    "--license": "licence of the result",
    "--source-license": "licence of the libraries that rows come from",
    "--layout": "layout of the result",
    # inputs
    "--suite": "suite to use",
    "--graphs": "folder of captured graphs",
    "--nets": "nets of each task",
    "--task": "only this task",
    "--tasks": "number of tasks",
    "--per-task": "graphs of each task",
    "--held-out": "suite of other shapes to reject by",
    "--eval": "suite kept out of training",
    "--eval-task": "task kept out of training",
    "--graph": "only this graph",
    "--candidate": "candidate to use",
    "--dataset": "folder of a dataset",
    "--split": "folder of a split",
    "--leaderboard": "folder of a leaderboard",
    "--library": "folder of a library of passes",
    "--into": "library of passes to add to",
    "--catalog": "all nets of a library",
    "--cases": "folder of a corpus of attacks",
    "--data": "folder of training data",
    "--checkpoint": "folder of a trained LLM",
    "--from": "run to begin with",
    "--answers": "folder of earlier answers",
    "--where": "condition on rows",
    "--all": "also passes that did not win",
    "--kind": "kind of subgraphs",
    "--dtype": "dtype of variants",
    "--size": "size of an axis",
    "--sizes": "also other sizes",
    "--num-sizes": "number of other sizes",
    "--share": "share of evaluation",
    "--text": "MiB of text",
    "--run": "number of rows to run",
    # judging
    "--self-tolerance": "noise before a repeat",
    "--rules": "what replacements may call",
    "--strides": "memory order of outputs",
    "--sandbox": "sandbox of candidates",
    "--require-sandbox": "no run without a sandbox",
    "--compile-timeout": "seconds of the first call",
    "--call-timeout": "seconds of later calls",
    "--call": "how rewritten graphs are called",
    "--tolerance": "level from which outputs are right",
    "--eval-mode": "modules in evaluation mode",
    "--fail-under": "AS below which to fail",
    "--distribution": "inputs of wrong programs",
    "--quick": "leave out the costly checks",
    "--only-sound": "leave out wrong programs",
    "--new-version": "version of the result",
    "--load": "spinning processes",
    "--rejudge": "judge entries again",
    "--b": "b of the metric",
    "--p": "p of the metric",
    "--shares": "file of the tasks' shares of time",
    "--by": "grouping of graphs",
    "--min-score": "least AS",
    "--sender": "who sends an entry",
    # authors and LLMs
    "--author": "author of passes",
    "--llm": "LLM to ask",
    "--base-url": "endpoint of the LLM",
    "--temperature": "sampling temperature",
    "--max-output-tokens": "most tokens of an answer",
    "--emulate-tools": "tools described in text",
    "--retries": "repeats of a failed request",
    "--answer-timeout": "seconds of a request",
    "--price": "price of tokens",
    "--turns": "most turns of an attempt",
    "--tokens": "most tokens of an attempt",
    "--cost": "most dollars of an attempt",
    "--attempts": "attempts at each task",
    "--guarded": "submit only what scores better",
    "--form": "form of training data",
    "--any-ending": "also without a submission",
    "--until-best": "cut after the best evaluation",
    # service
    "--port": "port",
    "--host": "address",
    "--token-file": "file of the token",
    "--max-waiting": "most waiting submissions",
    # capture and making
    "--weights": "weights of nets",
    "--train": "capture training",
    "--backward": "capture gradients",
    "--no-check": "no comparison with the net",
    "--no-build": "no building of graphs",
    "--no-shapes": "no inference of shapes",
    "--strict": "stop at an unreadable graph",
    "--min-graphs": "fewest graphs of a task",
    "--max-graphs": "most graphs of a task",
    "--max-gflops": "most GFLOP of a graph",
    "--max-bytes": "most bytes of arguments and outputs",
    "--level": "only this level of problems",
    "--max-mib": "most MiB of inputs",
    "--make-suite": "file of a suite to make",
    # optimize
    "--backend": "backend to try",
    "--sample": "one item in so many",
    "--freeze": "weights are constant",
    "--finite": "arguments are finite",
    # training
    "--structures": "number of structures",
    "--per-sequence": "structures of an op sequence",
    "--rare": "rows of an op",
    "--unjudged": "also unjudged rows",
    "--no-judge": "no judging",
    "--copies": "copies of a row",
    "--same-names": "no renaming",
    "--batch": "rows of a step",
    "--rate": "learning rate",
    "--width": "width of an LLM",
    "--layers": "layers of an LLM",
    "--words": "most words of a row",
    "--float32": "float32 everywhere",
    "--untrained": "no training",
    "--draw": "answers to sample",
    "--samples": "answers to judge",
    "--judge": "one answer in so many is judged",
    "--teacher": "also the compiler author",
    "--timed": "time the answers",
    "--free": "no grammar",
    "--check": "run answers before judging",
}
"""The meaning of each name. Two names never share one; a new option needs a new meaning here."""


def test_every_option_of_every_command_has_a_meaning() -> None:
    used = {name for path in commands() for name in options_of(path)}
    assert sorted(used - MEANINGS.keys()) == [], "give each a meaning, or use the name that has it"
    assert sorted(MEANINGS.keys() - used) == [], "no command has these any more"


def test_no_meaning_has_two_names() -> None:
    names = defaultdict(list)
    for name, meaning in MEANINGS.items():
        names[meaning].append(name)
    assert {meaning: twins for meaning, twins in names.items() if len(twins) > 1} == {}


def test_an_option_is_one_word_for_one_kind_of_value() -> None:
    kinds = defaultdict(lambda: defaultdict(set))
    for path in commands():
        for name, option in options_of(path).items():
            kind = "flag" if option.is_flag else type(option.type).__name__
            kinds[name][kind].add(" ".join(path))
    mixed = {name: dict(by) for name, by in kinds.items() if len(by) > 1}
    assert mixed.keys() <= MIXED.keys(), mixed


MIXED = {
    "--author": "a choice, or for `optimize` also trained:FOLDER",
    "--device": "a choice, or for a service several",
    "--timeout": "whole seconds of an attempt",
}
"""Options whose values differ between commands, with the reason."""
