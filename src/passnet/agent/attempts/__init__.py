"""One attempt of an author at a task.

session, tools           the attempt as it goes, and the author's actions
observations             the answer to each action
attempt, attempt_record  the records of an attempt
"""
