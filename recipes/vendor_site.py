"""The libraries of the site's tables and charts, fetched from npm into the package.

Run it with `python recipes/vendor_site.py`; it needs `npm`. It writes the minified files of exactly
these versions, and the licence of each beside it, to `src/passnet/pages/site/assets/vendor`. A
package with another SHA-512 is refused.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src" / "passnet" / "pages" / "site" / "assets" / "vendor"


@dataclass(frozen=True)
class NpmPackage:
    """A version of a package, its SHA-512 as npm writes it, and the files that are kept of it."""

    name: str
    version: str
    sha512: str
    files: dict[str, str]


PACKAGES = (
    NpmPackage(
        "tabulator-tables",
        "6.5.3",
        "nJ2QaqZzQvd9B4rf4LBnRxfb6sSqA/BX2OsXnSJ2d8k21oXDSTtFtOUrDap04a/6BDGivC/MByCxy43ugadJIg==",
        {
            "dist/js/tabulator.min.js": "tabulator.min.js",
            "dist/css/tabulator_simple.min.css": "tabulator.min.css",
            "LICENSE": "tabulator.LICENSE",
        },
    ),
    NpmPackage(
        "d3",
        "7.9.2",
        "ZKb/mONPVKzaO5UlcWcwN8bS4ezvQaYu+bsou+XgNABdGC800kwH651ADTbbTxMPHW13UlvbQafdmJQDk1w7Mg==",
        {"dist/d3.min.js": "d3.min.js", "LICENSE": "d3.LICENSE"},
    ),
    NpmPackage(
        "@observablehq/plot",
        "0.6.17",
        "/qaXP/7mc4MUS0s4cPPFASDRjtsWp85/TbfsciqDgU1HwYixbSbbytNuInD8AcTYC3xaxACgVX06agdfQy9W+g==",
        {"dist/plot.umd.min.js": "plot.min.js", "LICENSE": "plot.LICENSE"},
    ),
)


def fetch(package: NpmPackage, folder: Path) -> None:
    """Write the kept files of a package to a folder.

    Raises:
        SystemExit: npm gave another package than the one that is named here.
    """
    with tempfile.TemporaryDirectory() as scratch:
        word = f"{package.name}@{package.version}"
        subprocess.run(["npm", "pack", "--silent", word], cwd=scratch, check=True)
        [archive] = Path(scratch).glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != package.sha512:
            sys.exit(f"{word}: SHA-512 is {digest}, not {package.sha512}")
        with tarfile.open(archive) as files:
            for source, target in package.files.items():
                member = files.extractfile(f"package/{source}")
                assert member is not None, f"{word} holds a file {source}"
                lines = member.read().decode().splitlines(keepends=True)
                text = "".join(line for line in lines if "sourceMappingURL" not in line)
                (folder / target).write_text(text, encoding="utf-8")


def main() -> None:
    """Fetch all packages."""
    for package in PACKAGES:
        fetch(package, FOLDER)
        print(f"{package.name} {package.version}")


if __name__ == "__main__":
    main()
