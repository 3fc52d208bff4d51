"""The judge: reference and candidates in processes of their own, compared and timed.

desk                                     `judge_files`, the door for callers: folders in, trials out
suite, score                             tasks to judge on, and ES_t and AS of trials
judge, check, fenced                     one graph: candidates compared, then timed
compare, precision                       outputs against expected values
verdict, findings, limitations           the decision, its reasons, and known gaps
task, candidate, settings, trial         the records of a judgement
match_check, held_out                    pattern matches, and shapes unseen by the author
audit, doctor                            exploits tried on the judge, sandboxes tried here
inspection, timing, processes, protocol  the rooms outside of candidate code
worker                                   the only room that runs beside candidate code
"""
