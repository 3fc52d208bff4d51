"""Graphs as data: parse, print, identify, build and feed them, without executing their files."""
