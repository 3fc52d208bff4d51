"""Leaderboard entries.

command         `passnet leaderboard`
entry           a run as an entry that a pull request can carry
entry_checks    checks on an entry's records
board_settings  the settings that runs of one board share
rejudging       entries judged again
"""
