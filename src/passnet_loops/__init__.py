"""A small LLM that answers in loop nests, trained on two cores.

cli                                      `passnet train`
language                                 the language: loop nests and arithmetic
build, mining, examples                  training data from captured graphs
training_rows                            rows as text, a token for each word
checkpoint, sft                          LLMs on disk, and fine-tuned
policy, decoding, scripted_policy        prompts answered
row_judge, judge_rows                    answers judged
own_answers                              an LLM's own correct answers as training data
author                                   the LLM as an author of passes
evaluate, comparison, summaries, curves  systems compared on unseen tasks
"""
