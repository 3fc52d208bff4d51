"""The front desk of the judge: pass folders in, trials out.

desk        one door, `judge_files`, and the processes behind it, held open by `JudgeDesk`
candidates  candidates as the command line names them
judge_task  a task under several candidates, retried after failures of the judge itself
"""
