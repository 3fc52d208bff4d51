"""A study: paragraphs, tables and figures that somebody measured, as a folder that pages show.

The folder holds `study.json` and the figures that it names, each an SVG or PNG file beside it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.errors import InputError
from passnet.pages.tables.tables import Table

STUDY_FILE = "study.json"
MAX_FIGURE_BYTES = 8 * 2**20

_FIGURE_NAME = re.compile(r"[\w][\w.-]{0,99}\.(svg|png)", re.ASCII)


@dataclass(frozen=True)
class StudyFigure:
    """A picture of a study: the name of its file, and a sentence that says what it shows."""

    file: str
    caption: str


@dataclass(frozen=True)
class StudyPage:
    """What a study says.

    Args:
        title: its name, as a headline.
        finding: what was found, in one sentence with its main number.
        paragraphs: how it was measured, and what else there is to say.
        tables: its numbers; cells are texts.
        figures: its pictures.
        measured_on: hardware and versions.
    """

    title: str
    finding: str = ""
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[StudyFigure, ...] = ()
    measured_on: str = ""
    schema_version: int = SCHEMA_VERSION


def write_study_page(folder: Path, study: StudyPage) -> None:
    """Write what a study says beside its figures, which are there already.

    Raises:
        InputError: a figure is missing, or its name is none of a file beside.
    """
    for figure in study.figures:
        figure_path(folder, figure)
    write_json(folder / STUDY_FILE, study)


def read_study_page(folder: Path) -> StudyPage:
    """The study of a folder; its figures are there.

    Raises:
        InputError: it holds none, or one of another version, or a figure is missing.
    """
    study = read_json(folder / STUDY_FILE, StudyPage)
    if study.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{folder}: the study has version {study.schema_version}, this passnet reads version "
            f"{SCHEMA_VERSION}; make it again"
        )
    for figure in study.figures:
        figure_path(folder, figure)
    return study


def figure_path(folder: Path, figure: StudyFigure) -> Path:
    """The file of a figure.

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
    if path.stat().st_size > MAX_FIGURE_BYTES:
        raise InputError(f"{path}: larger than {MAX_FIGURE_BYTES} bytes; draw less")
    return path
