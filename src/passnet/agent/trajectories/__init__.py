"""Attempts after they end.

stats          statistics of attempts
selection      attempts fit to learn from, without duplicates
training_data  attempts as chats or pairs
"""
