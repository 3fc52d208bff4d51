"""Runs as a static site: leaderboard, tasks, attempts and studies, readable from disk.

measured       a run as the site reads it, with the sources of its passes
boards         runs that may share a column: one suite, one hardware, one judge
slices         the scores of a board by dtype, size and domain
text           text on its way into pages: names of files, scripts, source with colours
table_spec     tables as pages get them
pages          the folder of a site: pages from templates, scripts, assets
board_pages    the leaderboard, and the scores and trials of each board
task_pages     graph, trials, findings and pass folders of a task
attempt_pages  turns, scores and files of an attempt
study_pages    studies, and a dataset in numbers
build          a site from what it is given
templates      pages as Jinja has them; all that is filled in is escaped
assets         style and scripts of pages; recipes/vendor_site.py fetches the libraries in it
"""
