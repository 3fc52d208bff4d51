"""Subgraphs as Parquet.

store, query, stats                rows, the manifest, SQL queries, totals
build, build_records, build_sizes  captured graphs to a dataset
mined, resize, crossing            the rows of one graph, at other sizes and dtypes
variants, variant_sizes            whole graphs at other sizes and dtypes
verification                       rows that parse, match their hashes and run
splits                             training and evaluation rows without shared op sequences
layout, origins, importer          graph directories of other projects to rows
export, card                       rows to graph directories or to Hugging Face
progress                           progress callbacks
"""
