"""Whole nets made faster: every way to run a net is built, checked and timed, and the best returned.

    entry          one way to run a net on inputs of one form
"""
