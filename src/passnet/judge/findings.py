"""What the judge can find out about a candidate's honesty: the catalogue, and one finding of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["reject", "flag", "note"]
"""reject: proven, the trial scores as a cheat. flag: a strong sign, for a person to read. note:
information."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its severity, its name in `CATALOGUE`, and what shows it.

    `place` is `file:line` in the pass folder, of a finding in its text.
    """

    weight: Severity
    name: str
    evidence: str
    place: str | None = None


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One name that findings can have.

    Args:
        severities: those that it can have, the usual one first.
        proof: what shows it.
        meaning: what a candidate with this finding does, in a sentence.
    """

    name: str
    severities: tuple[Severity, ...]
    proof: Literal["text", "calls", "time", "values", "processes"]
    meaning: str


CATALOGUE: dict[str, FindingKind] = {
    kind.name: kind
    for kind in (
        FindingKind(
            "torch_fallback",
            ("reject", "flag"),
            "calls",
            "Under `--rules strict` it computes with a torch op outside patterns, as its text says "
            "or torch's dispatcher sees in observed calls; a flag where the text cannot tell.",
        ),
        FindingKind("late_write", ("reject",), "calls", "An output changed after its call ended."),
        FindingKind(
            "static_buffer",
            ("reject",),
            "calls",
            "An output that was still held changed when the graph was called again.",
        ),
        FindingKind(
            "early_work",
            ("reject",),
            "time",
            "More time passes between the writing of the inputs and the call than it takes to read "
            "them.",
        ),
        FindingKind(
            "late_work",
            ("reject",),
            "time",
            "On a GPU, the outputs take longer to be delivered than the reference's.",
        ),
        FindingKind(
            "physical_floor",
            ("reject",),
            "time",
            "Its time is impossible on this machine; the evidence has the arithmetic.",
        ),
        FindingKind(
            "hard_coded_shape",
            ("reject",),
            "values",
            "It is wrong on a shape of its task that was held out.",
        ),
        FindingKind(
            "precision_downgrade",
            ("flag",),
            "values",
            "On fresh inputs its error against float64 is that of the next lower precision, and 16 "
            "times eager torch's.",
        ),
        FindingKind(
            "unstable_maths",
            ("flag",),
            "values",
            "On extreme inputs its error against float64 is 2⁻⁹ (float32) or more, and 64 times "
            "eager torch's.",
        ),
        FindingKind(
            "background_thread",
            ("flag",),
            "processes",
            "It has more threads at the end than torch and a kernel need.",
        ),
        FindingKind(
            "background_process",
            ("flag",),
            "processes",
            "It leaves processes beside its worker at the end.",
        ),
        FindingKind(
            "evasion",
            ("flag",),
            "text",
            "Its code hides what it uses, as by exec or pickles.",
        ),
        FindingKind(
            "pattern_called", ("flag",), "text", "Its code calls the pattern that it replaces."
        ),
        FindingKind("timer_patch", ("flag",), "text", "Its code replaces a function of a module."),
        FindingKind("thread", ("flag",), "text", "Its code starts threads."),
        FindingKind("process", ("flag",), "text", "Its code starts processes or sends signals."),
        FindingKind("network", ("flag",), "text", "Its code opens network connections."),
        FindingKind(
            "introspection",
            ("flag",),
            "text",
            "Its code looks at frames, at the collector's objects, or at memory.",
        ),
        FindingKind("persistence", ("flag",), "text", "Its code writes files."),
        FindingKind(
            "overloaded_comparison",
            ("flag",),
            "text",
            "Its code overloads comparison, or what torch does with its objects.",
        ),
        FindingKind("nested_compile", ("flag",), "text", "Its code calls a compiler of torch."),
        FindingKind(
            "foreign_code", ("note",), "text", "Its code calls into libraries that are not read."
        ),
        FindingKind(
            "null_rewrite",
            ("note",),
            "calls",
            "A replacement runs the ops of its own pattern, and gains nothing by a kernel.",
        ),
        FindingKind(
            "held_out_shape",
            ("note",),
            "values",
            "On a held-out shape it does not match, or says by an exception that it cannot.",
        ),
    )
}
"""Every name that a finding can have."""


def finding(name: str, evidence: str, place: str | None = None) -> Finding:
    """A finding of the catalogue with its usual severity."""
    return Finding(CATALOGUE[name].severities[0], name, evidence, place)


def forbids_running(findings: Iterable[Finding]) -> bool:
    """Whether the text of a candidate alone proves that it cheats."""
    return any(finding.weight == "reject" and finding.place is not None for finding in findings)


def findings_table() -> str:
    """The catalogue as a table in Markdown, for the documentation."""
    rows = [
        f"| `{kind.name}` | {', '.join(kind.severities)} | {kind.proof} | {kind.meaning} |"
        for kind in CATALOGUE.values()
    ]
    return "\n".join(
        ["| finding | severity | shown by | what it says |", "|---|---|---|---|", *rows]
    )
