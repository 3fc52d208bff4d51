"""Runs of candidates over suites: resumable, recorded trial by trial, and scored.

    candidates   what a word of the command line names: a baseline, or pass folders
    run          every candidate on every graph, each trial on disk as soon as it is known
    judge_task   a task under some candidates, again where our own machinery fails
    run_record   what a run was begun with, its trials, and what may go on with them
    settings     what a run measures with
    cluster      judges on the machines and GPUs of a Ray cluster
    files        the names of the files of a run folder
    environment  the hardware and versions that a run was measured with
    scores       the scores of a run folder, or of any file of trials
    score_runs   the trials of several runs, for a score under other rules
    groups       the graphs on which a candidate wins and loses
    entry         a run as an entry of a leaderboard, which a pull request can carry
    entry_checks  what is checked of one from its records alone
    rejudging     entries judged again, and whether that confirms them

A trial of a run never changes; what is made of trials can be made again from the run folder.
"""
