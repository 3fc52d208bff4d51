"""Tables on the terminal and in Markdown.

cells                             figures and names as texts
fitting                           columns that fit a terminal
tables, results                   any table, and the tables and files of a run
catalog, dataset, listing         captures, datasets, graphs and tasks
attempt_tables                    attempts of authors
profile_tables                    profiles
optimizer_tables                  optimised nets
"""
