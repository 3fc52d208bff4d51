"""Formats of other projects: graph directories, files for Hugging Face, KernelBench's pairs.

folders, origins  rows as directories of the GraphNet and PassNet layouts
importer, export  directories to a dataset, and back
card              the card of an exported dataset
command           the commands of datasets
pairs             a reference and a candidate in files of their own, judged; suites of references
"""
