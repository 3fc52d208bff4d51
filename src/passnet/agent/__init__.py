"""Attempts: an author, llm or program, writes passes for a task and is judged as it goes.

    settings          what attempts are made with: author, limits, how states are judged
    attempt           the records of an attempt: messages, evaluations, what won; read back
    files             the pass folder of an attempt, held as text
    tools             the actions of an author, and their arguments
    evaluator         judges states of the folder, in processes of its own
    session           one attempt as it goes on, and the answer to each action
    observations      what an author is told of an evaluation or a match check
    graph_text        the graphs of a task as text
    rule_examples     what a prompt says of the rules, with code that breaks each
    prompt            what an llm is told before it begins
    judge_source      the judge's source, for those who attack it
    attack            attacks on the judge by an llm, and what gained as cases of a corpus
    attempt_record    an attempt that has ended, as a record
    run               a run of an author over a suite, resumable
    authors           authors that are programs
    inspect_task      an llm as author: PassAgent as a task of Inspect
    inspect_llm       the llms of Inspect's
    scripted_llm      an llm that plays a written trajectory
    inspect_registry  what Inspect finds of passnet
    stats             what attempts show about their authors
    stats_tables      tables and the figure of that
    dedup             digests of attempts that are the same
    selection         which attempts are fit to learn from
    training_data     attempts as chats or pairs to train on
    harbor            tasks as a dataset of Harbor
    harbor_verifier   the verifier of a Harbor task

The texts that an llm is told are in `prompts`, the trajectory of the scripted llm in `scripts`.
"""
