"""Leaderboard entries.

command       `passnet leaderboard`
entry         a run as an entry that a pull request can carry
entry_checks  checks on an entry's records
rejudging     entries judged again
"""
