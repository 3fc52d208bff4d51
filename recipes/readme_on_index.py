"""The README as a package index shows it: its links are addresses. A hook of hatchling."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)([^)\s]+)\)")


def with_addresses(text: str, repository: str) -> str:
    """Return the README with addresses of the repository in place of its relative links."""
    pictures = f"{repository.replace('github.com', 'raw.githubusercontent.com')}/main/"
    places = {"!": pictures, "": f"{repository}/blob/main/"}
    return _LINK.sub(lambda link: f"{link[1]}{link[2]}{places[link[1]]}{link[3]})", text)


class ReadmeHook(MetadataHookInterface):
    """Sets the README of the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata of a build."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        linked = with_addresses(text, metadata["urls"]["Repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": linked}
