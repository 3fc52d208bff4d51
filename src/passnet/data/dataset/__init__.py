"""Subgraphs as Parquet.

store, query, stats      rows, the manifest, SQL queries, totals
licences                 licences of the libraries that rows come from
build, build_records     captured graphs to a dataset
resize, variant_sizes    rows at other sizes
variants                 whole graphs and rows in other dtypes
verification             rows that parse, match their hashes and run
splits                   training and evaluation rows without shared op sequences
"""
