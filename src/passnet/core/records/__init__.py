"""Records on disk: written in one way, read strictly, refused where they would be too large.

    serialise               frozen dataclasses as JSON and JSON lines
    parquet, parquet_pages  frozen dataclasses as Parquet rows, checksums, limits on unpacked size
    atomic_folder           a folder that is complete or absent
    dtypes                  tensor dtypes in numpy, bfloat16 included

Nothing here imports torch, so readers of records start quickly.
"""
