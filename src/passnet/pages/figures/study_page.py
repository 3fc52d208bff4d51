"""Studies: measured paragraphs, tables and figures, as a folder that the site shows.

The folder holds `study.json` and the figures that it names, each an SVG or PNG file beside it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.core.records.untrusted import open_untrusted, read_untrusted
from passnet.errors import InputError
from passnet.pages.figures.inert_svg import inert_svg
from passnet.pages.tables.tables import Table

STUDY_FILE = "study.json"
MAX_FIGURE_BYTES = 8 * 2**20

_FIGURE_NAME = re.compile(r"[\w][\w.-]{0,99}\.(svg|png)", re.ASCII)

Drawing: TypeAlias = Callable[[Path], object]
"""Writes a figure to a file."""


@dataclass(frozen=True)
class StudyFigure:
    """A figure of a study: the name of its file, and a sentence on its content."""

    file: str
    caption: str


@dataclass(frozen=True)
class StudyPage:
    """The texts, tables and figures of a study."""

    title: str
    finding: str = ""
    """Its result, in one sentence with the main number."""

    paragraphs: tuple[str, ...] = ()
    """The method, and further remarks."""

    tables: tuple[Table, ...] = ()
    figures: tuple[StudyFigure, ...] = ()
    measured_on: str = ""
    """Hardware and versions."""

    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Study:
    """A study whose figures can be drawn; nothing is written yet."""

    name: str
    page: StudyPage
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    """The drawing of each figure, by the name of its file."""


def write_study(folder: Path, study: Study) -> None:
    """Draw the figures of a study into a folder, and write its page beside them.

    Raises:
        InputError: a file cannot be written.
    """
    for name, draw in study.drawings.items():
        draw(folder / name)
    write_study_page(folder, study.page)


def write_study_page(folder: Path, page: StudyPage) -> None:
    """Write the page of a study beside its figures, which are there already.

    Raises:
        InputError: a figure is missing, or its name is not that of a file beside the page.
    """
    for figure in page.figures:
        figure_path(folder, figure)
    write_json(folder / STUDY_FILE, page)


def read_study(folder: Path) -> Study:
    """Return the study of a folder; its figures are drawn by copying them.

    Raises:
        InputError: the folder holds no study or one of another version, or a figure is missing.
    """
    page = read_json(folder / STUDY_FILE, StudyPage)
    if page.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{folder}: the study has version {page.schema_version}, this passnet reads version "
            f"{SCHEMA_VERSION}; make it again"
        )
    copies = {
        figure.file: partial(_copy_figure, figure_path(folder, figure)) for figure in page.figures
    }
    return Study(folder.resolve().name, page, copies)


def figure_path(folder: Path, figure: StudyFigure) -> Path:
    """Return the file of a figure.

    Raises:
        InputError: it is missing, too large, or not beside `study.json`.
    """
    if _FIGURE_NAME.fullmatch(figure.file) is None:
        raise InputError(
            f"{folder / STUDY_FILE}: names the figure {figure.file[:100]!r}; give the plain name "
            "of an .svg or .png file beside it"
        )
    path = folder / figure.file
    if not path.is_file() or path.is_symlink():
        raise InputError(f"{path}: no such file, though {STUDY_FILE} names it as a figure")
    with open_untrusted(path, MAX_FIGURE_BYTES):
        return path


def _copy_figure(path: Path, target: Path) -> None:
    """Copy a figure, an SVG without what runs when it is opened by itself."""
    content = read_untrusted(path, MAX_FIGURE_BYTES)
    try:
        target.write_bytes(inert_svg(content) if path.suffix == ".svg" else content)
    except ValueError as cause:
        raise InputError(f"{path}: cannot be shown as a figure, {cause}") from cause
