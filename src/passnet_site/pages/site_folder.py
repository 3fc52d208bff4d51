"""The folder of a site: pages from templates, scripts with their data, and assets."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from passnet.core.records.serialise import write_text
from passnet.pages.site import pages
from passnet.pages.site.pages import render
from passnet.version import __version__
from passnet_site.pages.safe_text import colours_css, script

ASSETS = pages.PACKAGE / "assets"

PLOT_STYLE = """:where(.plot) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot text),
:where(.plot tspan) {
  white-space: pre;
}"""
"""The style that Observable Plot writes into a chart; the only inline style that pages allow."""


def content_policy() -> str:
    """Return the Content-Security-Policy of every page: only its own files, and no connection.

    `file:` is for browsers in which every file is an origin.
    """
    digest = base64.b64encode(hashlib.sha256(PLOT_STYLE.encode()).digest()).decode()
    own = "'self' file:"
    return (
        f"default-src 'none'; script-src {own}; style-src {own} 'sha256-{digest}'; "
        f"img-src {own}; base-uri 'none'; form-action 'none'"
    )


@dataclass(frozen=True)
class SiteFolder:
    """A site that is being written: its folder, its title, and the pages that all link to."""

    out: Path
    title: str
    sections: Sequence[tuple[str, str]]

    def write_page(
        self, page: str, template: str, data: Mapping[str, Any] | None = None, **facts: Any
    ) -> None:
        """Write a page, and its script unless `data` is None.

        Args:
            page: path in the site, NAME.html.
            template: name of the template.
            data: specifications of tables and charts, by their names on the page.
            facts: variables of the template.
        """
        path = PurePosixPath(page)
        root = "../" * (len(path.parts) - 1)
        target = self.out / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if data is not None:
            text = "".join(script(name, value) for name, value in data.items())
            write_text(target.with_suffix(".js"), text)
        rendered = render(
            template,
            root=root,
            page=page,
            site=self,
            policy=content_policy(),
            version=__version__,
            own_script=None if data is None else path.with_suffix(".js").name,
            has_charts=any("kind" in value for value in (data or {}).values()),
            **facts,
        )
        write_text(target, rendered)

    def write_assets(self) -> None:
        """Write the styles and scripts that all pages share."""
        for path in sorted(ASSETS.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                target = self.out / "assets" / path.relative_to(ASSETS)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        write_text(self.out / "assets" / "colours.css", colours_css())
