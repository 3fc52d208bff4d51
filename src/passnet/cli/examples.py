"""`passnet examples`: the examples and the small LLM that ship with passnet."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_result

EXAMPLES = "shipped_examples"
LLM = "passnet_llm"


@click.group("examples", cls=ExtensibleGroup)
def examples_group() -> None:
    """Copy the examples that ship with passnet."""


@dataclass(frozen=True, kw_only=True)
class ExamplesCopyOptions:
    """Options of `passnet examples copy`."""

    out: Path = opt.argument(metavar="DIR")

    json: bool = opt.shared("json")


@opt.command("copy", examples_group)
def copy_command(options: ExamplesCopyOptions) -> None:
    """Copy the examples to the new folder DIR: passes, pairs of files, and the small LLM.

    The LLM is a package of its own (pip install 'passnet[llm]'), and comes into DIR/llm.
    """
    from passnet.core.records.folders import atomic_folder

    out, llm, ignored = options.out, _llm_folder(), shutil.ignore_patterns("__pycache__")
    with atomic_folder(out) as partial:
        shutil.copytree(_examples_folder(), partial, ignore=ignored, dirs_exist_ok=True)
        if llm is not None:
            shutil.copytree(llm, partial / "llm", ignore=ignored)
    checkpoint = None if llm is None else str(out / "llm")
    absent = "without the small LLM: pip install 'passnet[llm]', then copy again to another folder"
    lines = [
        f"examples are in {out}; try one: passnet pass check {out / 'passes' / 'rms_norm'}",
        f"the small LLM: --author trained:{checkpoint}" if checkpoint else absent,
    ]
    print_result(options.json, {"folder": str(out), "checkpoint": checkpoint}, lines)


def _examples_folder() -> Path:
    """Return the folder of the examples, in the package or in the checkout."""
    package = Path(__file__).parents[1] / EXAMPLES
    return package if package.is_dir() else Path(__file__).parents[3] / "examples"


def _llm_folder() -> Path | None:
    """Return the folder of the small LLM, as installed or in the checkout; None if there is none.

    That of a checkout is the one at the package's side, and never one of the current directory.
    """
    spec = find_spec(LLM)
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    places.append(Path(__file__).parents[3] / "training" / "llm")
    return next((place for place in places if (place / "model").is_dir()), None)
