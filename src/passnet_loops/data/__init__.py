"""Training data.

build, mining, examples      rows from graphs of a dataset
rare_ops                     more rows of rare ops
judge_rows, row_judge        rows judged
own_answers, training_rows   answers of a checkpoint, and rows as tokens
"""
