"""Foundations: records on disk, jobs in processes, text for the terminal, the machine's hardware.

records   dataclasses as JSON and Parquet
jobs      work on many items: processes with limits, executors, resumable run folders
terminal  progress bars and safe text
hardware  the processor or card, threads and torch version that a time depends on
"""
