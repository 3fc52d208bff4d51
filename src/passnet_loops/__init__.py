"""A small LLM that answers in loop nests, trained on two cores.

cli                                      `passnet train`
language                                 the language: loop nests and arithmetic
settings                                 settings, and options of commands
data                                     training data, and answers judged
checkpoint, sft                          LLMs on disk, and fine-tuned
policy, decoding, scripted_policy        prompts answered
author                                   the LLM as an author of passes
evaluate, comparison, summaries, curves  systems compared on unseen tasks
"""
