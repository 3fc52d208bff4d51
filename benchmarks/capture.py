"""What capturing a net costs: time and memory, with fake weights and with real ones.

Run it with `make bench`. Every net is captured in a process of its own, one after another, in both
modes in turn. The overhead is what comes on top of the time that Dynamo itself takes to trace.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from passnet.core.jobs.process import JobRunner
from passnet.data.capture.catalog import resolve
from passnet.data.capture.record import CaptureSettings, NetRecord
from passnet.data.capture.run import capture_isolated
from passnet.errors import InputError
from passnet.pages.tables.tables import Table

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
    for name, words in NETS.items():
        try:
            entries = resolve(words)
        except InputError as cause:
            print(f"left out: {cause}")
            continue
        fake, real = [], []
        with JobRunner() as worker:
            capture_isolated(worker, entries[0], CaptureSettings())  # imports the library
            for entry in entries:
                for mode, records in (("fake", fake), ("real", real)):
                    settings = CaptureSettings(mode=mode, check=False)
                    records.append(capture_isolated(worker, entry, settings).record)
        same = sum(
            [note.full for note in first.graphs] == [note.full for note in second.graphs]
            for first, second in zip(fake, real, strict=True)
        )
        rows += [_row(name, "fake", fake, f"{same}"), _row(name, "real", real, "")]
    columns = ("library", "weights", "captured", "same graphs", "build s", "trace s",
               "over Dynamo's own", "in all s", "most MiB")  # fmt: skip
    return [Table("capture, medians over nets, one core", columns, rows)]


def _row(library: str, mode: str, records: Sequence[NetRecord], same: str) -> tuple[str, ...]:
    captured = [record for record in records if record.status == "captured"]
    over = [
        record.trace_s / record.dynamo_s - 1
        for record in captured
        if record.trace_s and record.dynamo_s
    ]
    return (
        library,
        mode,
        f"{len(captured)} of {len(records)}",
        same,
        _median([record.build_s for record in captured]),
        _median([record.trace_s for record in captured]),
        f"{100 * statistics.median(over):.1f} %" if over else "-",
        _median([record.wall_s for record in captured]),
        f"{max(record.peak_mib or 0 for record in records):.0f}",
    )


def _median(values: Sequence[float | None]) -> str:
    measured = [value for value in values if value is not None]
    return f"{statistics.median(measured):.2f}" if measured else "-"
