"""Commands that make data.

extract                               nets captured as graphs
dataset, dataset_rows, dataset_files  datasets built and read
"""
