"""Runs of candidates over suites: planned, resumable, recorded trial by trial."""
