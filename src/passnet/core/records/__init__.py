"""Records on disk: written in one way, read strictly, refused where they would be too large.

serialise               frozen dataclasses as JSON and JSON lines
parquet, parquet_pages  frozen dataclasses as Parquet rows, checksums, limits on unpacked size
untrusted               the one way in which files of strangers are opened
differences             what differs between two records, in words
folders                 a folder that is complete or absent, and the user's cache
dtypes                  tensor dtypes in numpy, bfloat16 included

Nothing here imports torch, so readers of records start quickly.
"""
