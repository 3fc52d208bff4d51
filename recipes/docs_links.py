"""Links of the site of the documentation: what is not in docs/ is shown by the repository.

A hook of MkDocs, which `mkdocs.yml` names.
"""

import re
from pathlib import PurePosixPath
from typing import Any

_LINK = re.compile(r"(\]\()(\.\.?/[^)\s]+)\)")


def outside_links(text: str, repository: str) -> str:
    """Return a page of docs/ with addresses in place of links to files beside docs/."""

    def address(match: re.Match[str]) -> str:
        path, mark, anchor = match[2].partition("#")
        if not path.startswith("../"):
            return match[0]
        inside = PurePosixPath(path).relative_to("..").as_posix()
        return f"{match[1]}{repository}/blob/main/{inside}{mark}{anchor})"

    return _LINK.sub(address, text)


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Return the text of a page as MkDocs renders it."""
    return outside_links(markdown, config["repo_url"])
