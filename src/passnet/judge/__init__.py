"""The judge: reference and candidates in processes of their own, compared and timed.

desk                                     `judge_files`, the door for callers: folders in, trials out
suite, score                             tasks to judge on, and ES_t and AS of trials
judge, fenced                            one graph: candidates compared, then timed
verdict                                  outputs against expected values, findings, the decision
task, candidate, settings, trial         the records of a judgement
match_check, held_out                    pattern matches, and shapes unseen by the author
limitations                              known gaps of the judge
inspection, timing, processes, protocol  the rooms outside of candidate code
worker                                   the only room that runs beside candidate code
"""
