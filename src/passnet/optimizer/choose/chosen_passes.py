"""The passes for one input signature: chosen, copied for backends, and recorded."""

import shutil
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from passnet.agent.settings import LlmSettings
from passnet.core.records.serialise import make_folder, read_json, write_json
from passnet.optimizer.backends.graphs import CHOSEN_FOLDER, captured_graphs
from passnet.optimizer.blocks import op_blocks
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.choose.kept_passes import KEPT_FOLDER, keep_passes
from passnet.optimizer.choose.pass_choice import TRAJECTORIES, PassChoice, choose_passes
from passnet.optimizer.record import PlaceRecord, RangeRecord, RangesRecord
from passnet.passes.library.entries import shipped_library
from passnet.passes.library.store import PassLibrary

RANGES_FILE = "ranges.json"


def passes_of_signature(
    call: NetCall,
    folder: Path,
    engines: Sequence[str],
    library_folder: Path,
    authors: Sequence[str],
    llm: LlmSettings | None,
    seconds: float,
) -> RangesRecord:
    """Choose passes for the ranges of a net, and copy their folders for the backends.

    Args:
        call: the net and its example.
        folder: the folder of the backends for this input signature.
        engines: the backends with passes; those built with other passes are removed.
        library_folder: the library of passes that were judged before.
        authors: as in `OptimizeSettings`.
        llm: an LLM that writes passes too.
        seconds: begin no further range after this time.
    """
    names = (*authors, *([llm.name] if llm else []))
    file = folder / RANGES_FILE
    if file.is_file():  # of a run that goes on
        earlier = read_json(file, RangesRecord)
        if earlier.authors == names:
            return earlier
    for name in engines:
        shutil.rmtree(folder / name, ignore_errors=True)
    graphs = captured_graphs(call)
    if not graphs:
        return RangesRecord(names)  # the backends say why there is none
    library = PassLibrary(library_folder)
    choice = choose_passes(
        [captured for captured, _ in graphs],
        library,
        authors,
        seconds,
        torch.get_num_threads(),
        shipped=shipped_library(),
        llm=llm,
        trajectories=folder / TRAJECTORIES,
    )
    home = folder / CHOSEN_FOLDER
    shutil.rmtree(home, ignore_errors=True)
    make_folder(home)
    for number, path in enumerate(choice.folders):
        shutil.copytree(path, home / f"{number:03}")
    digests = {result.digest for result in choice.results if result.digest}
    keep_passes(library, digests, folder / KEPT_FOLDER)
    blocks = tuple(op_blocks(call.net, fx_graph) for _, fx_graph in graphs)
    record = RangesRecord(names, _range_records(choice), blocks)
    write_json(file, record)
    return record


def _range_records(choice: PassChoice) -> tuple[RangeRecord, ...]:
    records = []
    replaced = {(c.result.digest, c.place) for c in choice.chosen}
    for result in choice.results:
        values: dict[str, Any] = {f.name: getattr(result, f.name, 0) for f in fields(RangeRecord)}
        values["places"] = tuple(
            PlaceRecord(p.graph, p.start, p.stop, (result.digest, p) in replaced)
            for p in result.places
        )
        values["num_places"] = len(result.places)
        values["num_chosen"] = sum(span.is_chosen for span in values["places"])
        records.append(RangeRecord(**values))
    return tuple(records)
