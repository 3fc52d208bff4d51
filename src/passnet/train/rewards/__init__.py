"""Rewards for trainers.

answers, reward, batch_rewards  answers as pass folders, and what their trials are worth
samples, sample_log, monitors   every answer recorded, and checks that end a cheating run
environment                     the agent's tools as an environment of TRL
"""
