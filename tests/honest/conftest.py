"""Keeps pytest from importing the passes and graphs of the corpus when it looks for doctests."""

collect_ignore_glob = ["*/*.py"]
