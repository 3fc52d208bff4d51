"""The files of a run folder."""

RUN_FILE = "run.json"
"""What was measured, with what, on what."""

TRIALS_FILE = "trials.jsonl"
"""One line a trial, appended as soon as it is known."""

SCORES_FILE = "scores.json"
TABLES_FILE = "tables.md"
FIGURE_FILE = "es.svg"
"""What is made of the trials; each can be made again."""
