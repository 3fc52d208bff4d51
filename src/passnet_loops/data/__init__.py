"""Training data.

build, mining, rare_ops,     rows from graphs of a dataset,
examples                     more of those with rare ops
judge_rows, row_judge        rows judged
own_answers, training_rows   answers of a checkpoint, and rows as tokens
"""
