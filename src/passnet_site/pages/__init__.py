"""The static site, readable from disk; its templates are in `passnet.pages.site`.

command, build              `passnet report`, and a site from its parts
measured, boards            runs that share a board, and their scores by group
site_folder, safe_text      its folder: pages with their data, and texts that run nothing
table_spec                  tables and charts as its scripts read them
board_pages, task_pages     leaderboards, tasks and trials
attempt_pages, study_pages  attempts, studies and datasets
training_page               the study of a training
"""
