"""Datasets: from nets to graphs to subgraphs.

capture  nets to graphs, with a catalog of libraries
mine     graphs to classical, fusible and single-op subgraphs
dataset  subgraphs as Parquet: build, query, verify, split, export
"""
