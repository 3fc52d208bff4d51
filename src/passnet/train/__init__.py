"""An llm learns to write passes: data, fine-tuning, reinforcement, and the judge as the reward.

loops              a form of answers: loop nests and arithmetic, in symbols of a prompt
mining             subgraphs of captured graphs, at random
examples           a row of training data, made by a teacher
judging            the judge over rows and answers: correct or not, or timed shortly
build              training data mined, answered, balanced and kept apart from evaluation
judge_rows         rows of a run, or of training data that is there, judged one by one
training_rows      rows of training data as texts
augment            a row under other names
tokenizer          a token for each word
checkpoint         llms as they are kept, with a model card
sft                supervised fine-tuning through TRL
loops_reward       the judge as the reward of answers in loops
own_answers        an llm's own right answers as training data
rl                 reinforcement through TRL, with that reward
decoding           answers word by word, many side by side
policy             an llm that answers prompts
nearest            the nearest neighbour as a baseline
evaluate           the answers of a system judged on tasks that it has not seen
comparison         several systems on the same tasks
summaries          their figures: how often correct, AS, and one beside the other
curves             the figure of a training
author             a trained llm as author of passes
reward             what the judge's trials of an answer are worth
answers            answers as pass folders
samples            the record of one answer that was given while learning
monitors           what is watched meanwhile, and when that ends a run
run_page           the page of a training: rewards step by step, monitors
sample_log         the answers of a run as it keeps them, watched by the monitors
judged             rewards of a batch of answers, judged side by side and recorded
environment        the agent's tools as an environment of TRL
service_evaluator  what these tools ask, judged by a reward service
"""
