"""Rewards for trainers.

reward, batch_rewards          the reward of an answer, and of a batch judged side by side
samples, sample_log, monitors  answers on disk, and checks that end a cheating run
environment                    the agent's tools as an environment of TRL
"""
