"""What a person reads of records: tables on the terminal and in Markdown, figures, progress bars.

    tables    tables of a run, and how any table is printed
    results   the files that a run folder gets from its records: scores, tables, a figure
    dataset   tables and figure of a dataset, and one of its rows
    catalog   tables of a run over the catalog
    listing   graphs and tasks as lines of text
    drawing   a graph as a picture
    progress  bars on the terminal, or lines where there is none

Nothing here measures or decides; a table is made from records alone.
"""
