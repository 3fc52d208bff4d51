"""The static site, readable from disk.

build, pages, text, table_spec  the folder of a site, its templates and safe text
measured, boards                runs that share a board, and their scores by group
board_pages, task_pages         leaderboards, tasks and trials
attempt_pages, study_pages      attempts, studies and datasets
templates, assets               Jinja templates, scripts and style
"""
