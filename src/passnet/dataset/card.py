"""The card of a dataset for Hugging Face: a README with a header that `datasets` reads.

Source: Hugging Face Hub, "Dataset cards" and "Manual configuration" (fields of the header).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from passnet.dataset.store import MAX_PLACES, SUBGRAPHS

CARD_FILE = "README.md"
_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
)
_LARGEST = "10M<n<100M"

_TYPES = {pa.string(): "string", pa.int64(): "int64"}

COLUMNS: Mapping[str, str] = {
    "full": "SHA-256 of ops, data flow, literals, and shapes and dtypes of the arguments; unique",
    "literals": "the same without shapes and dtypes",
    "structure": "the same without literals",
    "kinds": "how it was found: `classical`, a pattern that repeats; `fusible`, what a compiler "
    "makes into few kernels; `single`, one op; empty for a graph as captured",
    "program": "the text of a `torch.nn.Module` of straight-line code",
    "tensors": "JSON, one object an argument: name, shape, dtype, mean and standard deviation at "
    "capture, bounds, values where they are few",
    "op_sequence": "the names of the ops, in order",
    "num_ops": "how many",
    "dtype": "the floating-point dtype of most arguments, `none` without one",
    "variant": "what was changed of what was captured; empty where nothing was",
    "original": "`full` of the row that a variant was made of",
    "domain": "of the first net: `nlp`, `cv`, `multimodal`, `audio` or `other`",
    "nets": f"the nets that it was found in, the first {MAX_PLACES} by name",
    "num_graphs": "in how many captured graphs it was found",
    "num_places": "at how many places of them",
    "places": f"JSON, the first {MAX_PLACES} of these: the captured graph, and its ops from "
    "`start` to before `stop`",
}
"""What each column holds, in words."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card tells: rows by split, kind, domain and dtype, and where they come from.

    `license_name` is one of the names that Hugging Face knows.
    """

    name: str
    splits: Mapping[str, int]
    kinds: Mapping[str, int]
    domains: Mapping[str, int]
    dtypes: Mapping[str, int]
    num_op_sequences: int
    num_places: int
    versions: Mapping[str, list[str]]
    passnet_version: str
    license_name: str


def card(facts: CardFacts) -> str:
    """The text of the card."""
    total = sum(facts.splits.values())
    return "\n".join(
        [
            "---",
            *_header(facts, total),
            "---",
            "",
            f"# {facts.name}",
            "",
            f"{total:,} computation graphs of {facts.num_op_sequences:,} op sequences, found at "
            f"{facts.num_places:,} places of graphs captured from real nets with torch.compile's "
            f"tracer. Made by passnet {facts.passnet_version}".rstrip()
            + ".",
            "",
            "```python",
            "from datasets import load_dataset",
            "",
            'rows = load_dataset("path/of/this/folder", split="train")',
            "```",
            "",
            *_table("split", facts.splits),
            *_table("kind", facts.kinds),
            *_table("domain", facts.domains),
            *_table("dtype", facts.dtypes),
            "## Columns",
            "",
            "| column | what it holds |",
            "|---|---|",
            *(f"| {name} | {text} |" for name, text in COLUMNS.items()),
            "",
            *_apart(facts),
            *_origin(facts),
        ]
    )


def _header(facts: CardFacts, total: int) -> list[str]:
    size = next((name for limit, name in _SIZES if total < limit), _LARGEST)
    lines = [
        f"license: {facts.license_name}",
        f"pretty_name: {facts.name}",
        "size_categories:",
        f"- {size}",
        "tags:",
        "- computation-graphs",
        "- compilers",
        "- pytorch",
        "configs:",
        "- config_name: default",
        "  data_files:",
    ]
    for name in facts.splits:
        lines += [f"  - split: {name}", f"    path: data/{name}-*"]
    lines += ["dataset_info:", "  features:"]
    for item in SUBGRAPHS.schema:
        lines += [f"  - name: {item.name}", f"    {_feature(item.type)}"]
    return lines


def _feature(kind: Any) -> str:
    if pa.types.is_list(kind):
        return f"list: {_TYPES[kind.value_type]}"
    return f"dtype: {_TYPES[kind]}"


def _table(head: str, counts: Mapping[str, int]) -> list[str]:
    lines = [f"| {head} | rows |", "|---|--:|"]
    return [*lines, *(f"| {name} | {count:,} |" for name, count in counts.items()), ""]


def _apart(facts: CardFacts) -> list[str]:
    if len(facts.splits) < 2:
        return []
    return ["Training and evaluation share no op sequence.", ""]


def _origin(facts: CardFacts) -> list[str]:
    lines = ["## Where it comes from", ""]
    text = "Graphs are of nets of public libraries. Weights are not part of them."
    if not facts.versions:
        return [*lines, text, ""]
    found = [f"{name} {', '.join(items)}" for name, items in facts.versions.items()]
    return [*lines, f"{text} Versions: {'; '.join(found)}.", ""]
