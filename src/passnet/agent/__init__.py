"""Authors, LLMs or programs, that write passes over many turns.

run, settings                      an author over a suite, resumable
authors                            the authors: LLMs through Inspect, a compiler, a search
attempts                           one attempt: session, tools, observations, records
prompt, graph_text, rule_examples  the prompt of an LLM author
trajectories                       statistics and training data from attempts
prompts                            prompt texts
"""
