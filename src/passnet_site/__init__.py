"""The published results: the leaderboard, and the static site of runs, attempts and studies.

leaderboard  runs as entries, checked and judged again
pages        the pages of the site
"""
