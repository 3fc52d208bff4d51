"""Training data.

build, mining, examples      rows from graphs of a dataset
judge_rows, row_judge        rows judged
own_answers, training_rows   answers of a checkpoint, and rows as tokens
"""
