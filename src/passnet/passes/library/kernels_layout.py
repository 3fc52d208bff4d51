"""A library as a repository of Hugging Face's package `kernels`, which loads it by name.

A repository is a folder::

    README.md                    the card: licence, tags, passes with their times
    LICENSE                      the SPDX identifier of the licence
    build/torch-cpu/             the passes for one device
        __init__.py              `passes()`, the pass folders in order
        metadata.json            name, unique id and licence
        library/                 the passes with their records, as any library

A variant that compiles nothing ahead is named `torch-BACKEND`. `torch-universal` still loads, but
the metadata must name one backend, so each device has a variant.

Source: kernels 0.17.2, `variants.py`, `resolver.py` and `importer.py`, and what its reader of
`metadata.json` accepts.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from passnet.core.records.folders import check_free
from passnet.core.records.serialise import make_folder, write_json, write_text
from passnet.errors import InputError
from passnet.passes.files import unguarded
from passnet.passes.library.entries import ENTRIES, PASS_FOLDER, PassEntry, best_passes
from passnet.passes.library.store import PassLibrary
from passnet.version import __version__

BUILD = "build"
LIBRARY = "library"
SHOWN_DIGITS = 12

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}[a-z0-9]")
_LICENSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")

_MODULE = '''\
"""Passes for PyTorch graphs, judged by passnet {version}; no code of theirs runs on import."""

from pathlib import Path

LIBRARY = str(Path(__file__).parent / "{library}")
"""The passes with their records, as a library of passnet."""

_DIGESTS = (
{digests}
)


def passes():
    """Return the paths of the pass folders, in the order to apply them."""
    return [str(Path(LIBRARY, "{entries}", digest, "{folder}")) for digest in _DIGESTS]
'''

_CARD = """\
---
library_name: kernels
license: {license_tag}
tags:
- kernels
- passnet
- pytorch
---

# {name}

{num_passes} passes for `torch.compile`: each replaces a few ops by a faster kernel. Guards keep a pass to the arguments
that it was judged on. C++ sources are compiled at the first call. The passes need the Python package `passnet`.

```python
import passnet
from kernels import get_kernel

kernel = get_kernel("OWNER/{name}", version=1, trust_remote_code=True)
with passnet.passes_in_inductor(kernel.passes()):
    fast = torch.compile(net)
    fast(x)
```

`get_local_kernel(Path("FOLDER"))` loads a copy on disk. This code runs in your process. `passnet library import FOLDER
--into LIBRARY` judges each pass in a sandbox on your machine first, and keeps those that win there.

| pass | ops | arguments | speedup (95 % interval) | judged on |
|---|---|---|---|---|
{rows}

The judge's records lie beside the folder of each pass.
"""


def export_kernels(
    library: PassLibrary, out: Path, entries: Sequence[PassEntry], name: str, license_id: str
) -> None:
    """Write entries as a repository of `kernels`; raise InputError for a bad name or `out`.

    Args:
        name: lower-case letters, digits and dashes, as `kernels` demands.
        license_id: the SPDX identifier of one licence.
    """
    _check(name, _NAME, "--name", "lower-case letters, digits and dashes, such as my-passes")
    _check(license_id, _LICENSE, "--license", "an SPDX identifier, such as MIT or Apache-2.0")
    check_free(out)
    unknown = {entry.hardware.device for entry in entries} - {"cpu", "cuda"}
    if unknown:
        raise InputError(f"{library.folder}: `kernels` has no device {min(unknown)!r}")
    applied: list[PassEntry] = []
    for device in sorted({entry.hardware.device for entry in entries}):
        of_device = [entry for entry in entries if entry.hardware.device == device]
        variant = out / BUILD / f"torch-{device}"
        make_folder(variant)
        library.export(variant / LIBRARY, of_device)
        of_variant = _applied(library, of_device)
        digests = [entry.digest for entry in of_variant]
        applied += of_variant
        write_text(variant / "__init__.py", _module_text(digests))
        write_json(variant / "metadata.json", _metadata(name, device, license_id, digests))
    write_text(out / "LICENSE", _license_text(license_id))
    write_text(out / "README.md", _card_text(applied, name, license_id))


def _applied(library: PassLibrary, entries: Sequence[PassEntry]) -> list[PassEntry]:
    """Return the best pass for each range, of those with guards."""
    return best_passes(
        entry
        for entry in entries
        if entry.saved_ms > 0 and unguarded(library.files(entry)) is None
    )


def _check(word: str, pattern: re.Pattern[str], option: str, allowed: str) -> None:
    if pattern.fullmatch(word) is None:
        raise InputError(f"{word!r} is no value of {option}; give {allowed}")


def _module_text(digests: Sequence[str]) -> str:
    lines = "\n".join(f'    "{digest}",' for digest in digests)
    return _MODULE.format(
        version=__version__, library=LIBRARY, digests=lines, entries=ENTRIES, folder=PASS_FOLDER
    )


def _metadata(name: str, device: str, license_id: str, digests: Sequence[str]) -> dict[str, object]:
    """Return the metadata; two libraries of one name have ids of their own, so both can load."""
    content = hashlib.sha256("".join(digests).encode()).hexdigest()[:SHOWN_DIGITS]
    return {
        "name": name,
        "id": f"_{name.replace('-', '_')}_{device}_{content}",
        "version": 1,
        "license": license_id,
        "python-depends": [],  # `kernels` knows a fixed list of packages, and passnet is not on it
        "backend": {"type": device},
    }


def _license_text(license_id: str) -> str:
    return (
        f"SPDX-License-Identifier: {license_id}\n\nThe passes in this folder are licensed under "
        f"{license_id}, whose text is at https://spdx.org/licenses/{license_id}.html\n"
    )


def _card_text(entries: Sequence[PassEntry], name: str, license_id: str) -> str:
    rows = "\n".join(map(_row, entries))
    return _CARD.format(
        license_tag=license_id.lower(), name=name, num_passes=len(entries), rows=rows
    )


def _row(entry: PassEntry) -> str:
    ops = " ".join(op.rsplit(".", 1)[-1] for op in entry.ops)
    return (
        f"| `{entry.digest[:SHOWN_DIGITS]}` | {ops} | {', '.join(entry.forms)} | "
        f"{entry.speedup_low:.2f} – {entry.speedup_high:.2f} | {entry.hardware.text} |"
    )
