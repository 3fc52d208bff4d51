"""Suites: tasks of graphs that candidates are measured on, and how they are made of a dataset.

    suite           tasks of graphs, their content hash, and the file that they are stored in
    selection       from the rows of a dataset to tasks, and which of these make a benchmark
    balance         a selection held to shares of domains and lengths, and what is held out of it
    wrong_programs  what a wrong program does: outputs that are made up, ops that are not done
    admission       whether wrong programs fail on a graph, on the inputs of the judge
    assembly        a suite made of a dataset: selection and admission, until all is admitted
    publication     a release of graphs, subgraphs, suites and trajectories for Hugging Face
    publication_card  its card, datasheet and citation
    suite_keys      the op sequences and structures that no row to train on may share

Nothing here knows how candidates are judged: the judge imports suites, not the other way round.
"""
