"""What capturing a net costs: time and memory, with fake weights and with real ones.

Run it with `make bench`. Every net is captured in a process of its own, one after another, in both
modes in turn. The overhead is what comes on top of the time that Dynamo itself takes to trace.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from passnet.errors import InputError
from passnet.extract.capture_job import capture_isolated
from passnet.extract.entry_selection import resolve
from passnet.extract.record import CaptureSettings, NetRecord
from passnet.jobs.process import JobRunner
from passnet.report.tables import Table

NETS = {
    "timm": (
        "timm/resnet50", "timm/vit_base_patch16_224", "timm/swin_tiny_patch4_window7_224",
        "timm/efficientnet_b0", "timm/convnext_tiny", "timm/mobilenetv3_large_100",
        "timm/regnety_032", "timm/mixer_b16_224",
    ),
    "transformers": (
        "transformers/BertModel", "transformers/GPT2LMHeadModel", "transformers/LlamaForCausalLM",
        "transformers/T5ForConditionalGeneration", "transformers/ViTModel",
        "transformers/CLIPModel", "transformers/Wav2Vec2Model", "transformers/DistilBertModel",
    ),
}  # fmt: skip


def capture_tables() -> list[Table]:
    """A table of the medians of every library and mode."""
    rows = []
    for name, wanted in NETS.items():
        try:
            entries = resolve(wanted)
        except InputError as cause:
            print(f"left out: {cause}")
            continue
        fake, real = [], []
        with JobRunner() as worker:
            capture_isolated(worker, entries[0], CaptureSettings())  # imports the library
            for entry in entries:
                fake.append(
                    capture_isolated(
                        worker, entry, CaptureSettings(mode="fake", check=False)
                    ).record
                )
                real.append(
                    capture_isolated(
                        worker, entry, CaptureSettings(mode="real", check=False)
                    ).record
                )
        same = sum(
            [note.full for note in one.graphs] == [note.full for note in other.graphs]
            for one, other in zip(fake, real, strict=True)
        )
        rows += [_row(name, "fake", fake, f"{same}"), _row(name, "real", real, "")]
    columns = ("library", "weights", "captured", "same graphs", "build s", "trace s",
               "over Dynamo's own", "in all s", "most MiB")  # fmt: skip
    return [Table("capture, medians over nets, one core", columns, rows)]


def _row(library: str, mode: str, records: Sequence[NetRecord], same: str) -> tuple[str, ...]:
    done = [item for item in records if item.status == "captured"]
    over = [item.trace_s / item.dynamo_s - 1 for item in done if item.trace_s and item.dynamo_s]
    return (
        library,
        mode,
        f"{len(done)} of {len(records)}",
        same,
        _median([item.build_s for item in done]),
        _median([item.trace_s for item in done]),
        f"{100 * statistics.median(over):.1f} %" if over else "-",
        _median([item.wall_s for item in done]),
        f"{max(item.peak_mib or 0 for item in records):.0f}",
    )


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.2f}" if known else "-"
