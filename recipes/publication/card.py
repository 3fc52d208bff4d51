"""The card of a release: the answers that users and maintainers of a public dataset ask for.

Source: Hugging Face Hub, "Dataset cards" and "Manual configuration"; Gebru et al., "Datasheets for
Datasets" (arXiv 1803.09010), whose questions the second half answers in order; Citation File Format
1.2.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from passnet_exchange.card import feature_lines, size_category, yaml_text

CARD_FILE = "README.md"
CITATION_FILE = "CITATION.cff"
PUBLISHED_WORK = "https://arxiv.org/abs/2605.29357"


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """The content of a configuration: rows by split and by domain, its columns if it has a schema,
    and the tasks of a suite.
    """

    name: str
    splits: Mapping[str, int]
    domains: Mapping[str, int]
    schema: pa.Schema | None
    num_tasks: int | None = None

    @property
    def num_rows(self) -> int:
        """The rows of all splits."""
        return sum(self.splits.values())


@dataclass(frozen=True, slots=True)
class PublicationFacts:
    """The content of a release and its libraries, with versions and licences; `url` is its address,
    where errors are reported.
    """

    name: str
    version: str
    license_name: str
    configs: tuple[ConfigFacts, ...]
    versions: Mapping[str, list[str]]
    licences: Mapping[str, str]
    url: str | None = None


_ABOUT = {
    "graphs": "computation graphs of whole nets, as torch.compile's tracer found them; the splits "
    "are their kinds: in use (`inference`), the forward pass in training (`training`), and what "
    "computes its gradients, in ops of aten (`backward`)",
    "subgraphs": "ranges of ops cut out of these graphs: patterns that repeat, what a compiler "
    "makes into few kernels, single ops; in other dtypes and at other sizes too",
    "trajectories": "attempts of llms and programs to write passes, as chats with tool calls; "
    "lists are JSON",
}

_CARD = """\
---
license: {license_name}
pretty_name: {name}
version: {version}
size_categories:
- {size}
tags:
- computation-graphs
- compilers
- pytorch
- code
configs:
{configs}
dataset_info:
{features}
---

# {facts.name} {facts.version}

Computation graphs of nets, for people who build graph compilers, or teach llms to. A row is the
text of a graph, which is straight-line code of torch, with shapes, dtypes and statistics of its
arguments. There are no weights and no data that a net was trained on.

```python
from datasets import load_dataset

rows = load_dataset("path/of/this/repository", "{first}", split="{first_split}")
```

| configuration | split | rows | what it holds |
|---|---|--:|---|
{table}

{domains}
## Where it comes from

Nets are built from their architecture by their library's own code, with random weights, and traced.

| package | versions | licence of its code |
|---|---|---|
{sources}

The licence of this release covers the graphs and their descriptions. A graph is a record of the
calls to torch that a net made, with shapes, and with names of its layers; it holds no source text
of the library. We hold that such a record is not a copy of the library. If your rules differ,
leave rows out: `licences` of `graphs` and `subgraphs` names the licence of each row's libraries,
and `nets`, `sources` and `source` name the nets themselves, as library/net.

## Datasheet

**Why was it made?** To measure and to train authors of graph-compiler passes on the long tail of
computations that real nets hold, and not only on those that compilers were tuned for. It follows
[PassNet]({published}), whose own corpus it does not contain.

**What does an instance consist of?** A program, the specs of its arguments, the sequence of its
ops, three fingerprints (of everything; without shapes and dtypes; without literals too), and where
it was found.

**How many are there, and are they a sample?** See the table. Graphs are those of the nets of the
libraries above that could be captured; what failed, and why, is counted in the project's
documentation. No instance is left out for what it computes.

**Is anything missing?** Custom operators, nets that look at values as they run, and what packs
sequences. Deep nets of transformers have four layers of each stack, as their configuration is
reduced.

**Are there splits?** `subgraphs` is split by op sequence: what evaluates shares no op sequence and
no structure with what trains, and so is every suite kept out of training. Suites are for
evaluation only, and `-held-out` suites for what their users have not seen.

**Is there noise or redundancy?** A row is unique by its full fingerprint; many differ in shapes or
dtypes alone, and `structure` groups them. Graphs of nets with fake weights were compared with their
net where it is small enough; those that differ are counted in the documentation.

**Is anything confidential, personal or offensive?** No. Inputs are random numbers; there is no
text, image or sound of anyone. `trajectories` holds what llms wrote about code.

**How was it collected?** By programs, with the versions above, on one machine in weeks of 2026. No
people were asked or paid.

**What should it not be used for?** To judge nets or libraries by how many graphs they have here:
that follows from how many entries a library lists. Statistics of arguments are those of
initialisation and say nothing of trained weights. Programs are code: build them with a reader that
checks what they call, as passnet's does, and do not execute them as they are.

**Who maintains it?** The passnet authors{where}.
Versions are numbers of three parts: the first grows when a row changes meaning, the second when
rows are added, the third when mistakes are mended. Suites never change under their name; a new
selection is a new name. Old versions stay as tags.

## How to cite

See `CITATION.cff`, and cite the libraries whose nets you use.
"""


def publication_card(facts: PublicationFacts) -> str:
    """Return the text of the card."""
    first = facts.configs[0]
    return _CARD.format(
        facts=facts,
        license_name=yaml_text(facts.license_name),
        name=yaml_text(facts.name),
        version=yaml_text(facts.version),
        size=size_category(sum(config.num_rows for config in facts.configs)),
        configs="\n".join(map(_config, facts.configs)),
        features="\n".join(_features(config) for config in facts.configs if config.schema),
        first=first.name,
        first_split=next(iter(first.splits)),
        table="\n".join(_row(config) for config in facts.configs),
        domains=_domains(facts.configs),
        sources="\n".join(
            f"| {package} | {', '.join(numbers)} | {facts.licences[package]} |"
            for package, numbers in facts.versions.items()
        ),
        published=PUBLISHED_WORK,
        where=f", at {facts.url}; errors are reported there" if facts.url else "",
    )


def citation(facts: PublicationFacts) -> str:
    """Return the citation of a release as a file that GitHub, Zenodo and others read."""
    return (
        "cff-version: 1.2.0\n"
        "message: If you use this dataset, please cite it as below.\n"
        "type: dataset\n"
        f"title: {yaml_text(facts.name)}\n"
        f"version: {yaml_text(facts.version)}\n"
        f"license: {yaml_text(facts.license_name.upper())}\n"
        + (f"url: {yaml_text(facts.url)}\n" if facts.url else "")
        + "authors:\n"
        "  - name: The passnet authors\n"
        "references:\n"
        "  - type: article\n"
        "    title: PassNet\n"
        f"    url: {PUBLISHED_WORK}\n"
        "    authors:\n"
        "      - name: The authors of PassNet\n"
    )


def _config(config: ConfigFacts) -> str:
    files = "".join(
        f"\n  - split: {split}\n    path: {yaml_text(f'{config.name}/{split}-*')}"
        for split in config.splits
    )
    return f"- config_name: {yaml_text(config.name)}\n  data_files:{files}"


def _features(config: ConfigFacts) -> str:
    lines = "\n".join(feature_lines(config.schema))
    return f"- config_name: {yaml_text(config.name)}\n  features:\n{lines}"


def _row(config: ConfigFacts) -> str:
    about = _ABOUT.get(config.name, f"a suite of {config.num_tasks} tasks, for evaluation")
    return "\n".join(
        f"| `{config.name}` | `{split}` | {count:,} | {about} |"
        for split, count in config.splits.items()
    )


def _domains(configs: tuple[ConfigFacts, ...]) -> str:
    """Return shares of domains by configuration, in per cent; nothing without any."""
    described = [config for config in configs if config.domains]
    if not described:
        return ""
    names = sorted({name for config in described for name in config.domains})
    lines = [
        f"| domain | {' | '.join(config.name for config in described)} |",
        f"|---|{'--:|' * len(described)}",
    ]
    for name in names:
        shares = [100 * config.domains.get(name, 0) / config.num_rows for config in described]
        lines.append(f"| {name} | {' | '.join(f'{share:.1f} %' for share in shares)} |")
    return "\n".join(lines) + "\n"
