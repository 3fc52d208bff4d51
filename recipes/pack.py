"""Pack the records of finished runs: `python -m recipes.pack FOLDER ...`.

Every JSON-lines file below the folders becomes its gzip copy, a fifth of its size. Every reader of
passnet, and DuckDB, reads it as before; a run that goes on unpacks its own file first.
"""

import sys
from pathlib import Path

from passnet.core.records.serialise import pack_lines

if __name__ == "__main__":
    for folder in sys.argv[1:]:
        for path in sorted(Path(folder).rglob("*.jsonl")):
            pack_lines(path)
            print(f"packed {path}")
