"""The card of a dataset for Hugging Face: a README with a header that `datasets` reads.

Source: Hugging Face Hub, "Dataset cards" and "Manual configuration" (fields of the header).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from passnet.core.terminal.visible_text import visible
from passnet.data.dataset.licences import MAX_NETS
from passnet.data.dataset.store import MAX_PLACES, SUBGRAPHS
from passnet.pages.tables.tables import plain_markdown

CARD_FILE = "README.md"
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")
_TABLES = ("split", "kind", "domain", "dtype")
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
    "variant": "what differs from the captured row: a dtype, or the sizes of axes of its net "
    "(`batch=4,sequence=16`); empty for what was captured",
    "original": "`full` of the row that a variant was made of",
    "domain": "of the first net: `nlp`, `cv`, `multimodal`, `audio` or `other`",
    "nets": f"the nets that it was found in, up to {MAX_NETS}, with one of each licence",
    "num_graphs": "in how many captured graphs it was found",
    "num_places": "in how many places of them",
    "places": f"JSON, the first {MAX_PLACES} of these: the captured graph, and its ops from "
    "`start` to before `stop`",
}


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The facts of a card; `license_name` is one that Hugging Face knows."""

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


_CARD = """\
---
license: {license_name}
pretty_name: {pretty_name}
size_categories:
- {size}
tags:
- computation-graphs
- compilers
- pytorch
configs:
- config_name: default
  data_files:
{files}
dataset_info:
  features:
{features}
---

# {title}

{total:,} computation graphs of {facts.num_op_sequences:,} op sequences, found in \
{facts.num_places:,} places of graphs captured from real nets with torch.compile's tracer. \
Made by passnet {facts.passnet_version}.

```python
from datasets import load_dataset

rows = load_dataset("path/of/this/folder", split="train")
```

{tables}
## Columns

| column | what it holds |
|---|---|
{columns}

{separation}## Where it comes from

Graphs are of nets of public libraries. Weights are not part of them.{versions}
"""


def card(facts: CardFacts) -> str:
    """Return the text of the card."""
    total = sum(facts.splits.values())
    separation = "Training and evaluation share no op sequence.\n\n"
    versions = [f"{name} {', '.join(numbers)}" for name, numbers in facts.versions.items()]
    tables = []
    for head in _TABLES:
        counts = getattr(facts, f"{head}s").items()
        rows = "".join(f"| {plain_markdown(name)} | {count:,} |\n" for name, count in counts)
        tables.append(f"| {head} | rows |\n|---|--:|\n{rows}")
    return _CARD.format(
        facts=facts,
        license_name=yaml_text(facts.license_name),
        pretty_name=yaml_text(facts.name),
        title=plain_markdown(facts.name),
        size=size_category(total),
        files="\n".join(f"  - split: {name}\n    path: data/{name}-*" for name in facts.splits),
        features="\n".join(feature_lines(SUBGRAPHS.schema)),
        total=total,
        tables="\n".join(tables),
        columns="\n".join(f"| {name} | {text} |" for name, text in COLUMNS.items()),
        separation=separation if len(facts.splits) > 1 else "",
        versions=f" Versions: {plain_markdown('; '.join(versions))}." if versions else "",
    )


def yaml_text(text: str) -> str:
    """Return a text as a scalar of YAML, which reads strings of JSON.

    Examples:
        >>> print(yaml_text('a: "b"'))
        "a: \\"b\\""
    """
    return json.dumps(visible(text), ensure_ascii=False)


def size_category(num_rows: int) -> str:
    """Return Hugging Face's name for a number of rows."""
    return _SIZES[min(max(len(str(num_rows)) - 3, 0), len(_SIZES) - 1)]


def feature_lines(schema: pa.Schema) -> list[str]:
    """Return the columns of a schema as lines of a card's header."""
    lines = []
    for column in schema:
        is_list = pa.types.is_list(column.type)
        kind = _TYPES[column.type.value_type if is_list else column.type]
        lines.append(f"  - name: {column.name}\n    {'list' if is_list else 'dtype'}: {kind}")
    return lines
