"""Datasets in the formats of other projects: graph directories, and files for Hugging Face.

folders, origins  rows as directories of the GraphNet and PassNet layouts
importer, export  directories to a dataset, and back
card              the card of an exported dataset
command           the commands
"""
