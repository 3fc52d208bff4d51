"""Records on disk: written in one way, read strictly, refused where they would be too large.

    serialise      frozen dataclasses as JSON and JSON lines
    parquet        frozen dataclasses as rows of Parquet files, in sets with checksums
    parquet_pages  what the pages of a Parquet file unpack to
    atomic_folder  a folder that is there with all that belongs in it, or not at all
    dtypes         element types of tensors in numpy, bfloat16 included

Nothing here imports torch, so that whatever reads records starts quickly.
"""
