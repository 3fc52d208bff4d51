"""Tables on the terminal and in Markdown.

tables                            any table, and the tables of a run
results                           a run folder's files
catalog, dataset, listing         captures, datasets, graphs and tasks
attempt_tables                    attempts of authors
profile_tables, optimizer_tables  profiles and optimised nets
"""
