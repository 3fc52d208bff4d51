"""The door of the judge: pass folders or baselines in, trials out.

evaluator             pass folders judged one after another, with warm processes
judge_task            a task under several candidates, retried after faults of ours
candidates, settings  candidates by name, and how a run measures
"""
