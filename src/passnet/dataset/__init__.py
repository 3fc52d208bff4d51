"""Datasets of subgraphs: rows made of captured graphs, asked, checked, split and exchanged.

store          a row, its file format, and the manifest of a dataset
build          captured graphs to a dataset: fold the corpus, mine every graph, merge
build_sizes    the rows of a build at other sizes
build_records  what came of each graph and of each net at another size, and all in numbers
mined          the subgraphs of one captured graph, and the rows that they are
resize         the subgraphs of the graphs of a net at another size
crossing       rows at other sizes in other dtypes as well
query          a dataset asked with expressions of SQL
stats          what a dataset holds in numbers
verification   whether a dataset is what it says, and whether its rows run
splits         rows to train on and rows to evaluate on, apart by op sequence
layout         rows as graph directories of GraphNet and PassNet, and back
origins        the directories that imported rows come from
importer       graph directories, or an exported dataset, to a dataset
export         a dataset to graph directories, or to files for Hugging Face
card           the README of a dataset for Hugging Face
progress       how long work says how far it is
variants       captured graphs at other sizes and in other dtypes, whole, each run where it is small
variant_sizes  the sizes at which a net is captured again
"""
