"""What a person reads of records: tables on the terminal and in Markdown, figures, progress bars.

    tables        tables of a run, and how any table is printed
    es_figure     the score by tolerance as a figure
    sensitivity   table and figure of the score by the rules of the metric
    styles        how lines are told apart in figures
    results       the files that a run folder gets from its records: scores, tables, a figure
    dataset       tables and figure of a dataset, and one of its rows
    catalog       tables of a run over the catalog
    listing       graphs and tasks as lines of text
    drawing       a graph as a picture
    boxes         the boxes of that, and what joins them
    dot_layout    boxes placed by Graphviz
    layered       a plain layout, for where that is not installed
    study_page    what somebody measured, as paragraphs, tables and figures in a folder
    visible_text  text that others wrote, with what does not print made visible
    progress      bars on the terminal, or lines where there is none

Nothing here measures or decides; a table is made from records alone.
"""
