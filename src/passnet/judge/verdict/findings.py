"""Findings on a candidate's honesty: the catalogue, and the record of one finding."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["reject", "flag", "note"]
"""reject: proven, the trial scores as a cheat. flag: a sign for a person to read. note:
information."""
Proof: TypeAlias = Literal["text", "calls", "time", "values", "processes"]
"""The source of a finding's evidence."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding named in `CATALOGUE`; `place` is `file:line` in the pass folder, if in its text."""

    weight: Severity
    name: str
    evidence: str
    place: str | None = None


@dataclass(frozen=True, slots=True)
class FindingKind:
    """An entry of the catalogue: its severities, the usual one first, and its meaning."""

    name: str
    severities: tuple[Severity, ...]
    proof: Proof
    meaning: str


_MEANINGS: dict[tuple[tuple[Severity, ...], Proof], dict[str, str]] = {
    (("reject", "flag"), "calls"): {
        "torch_fallback": "Under `--rules strict` it computes with a torch op outside patterns: in "
        "its text, or in observed calls by torch's dispatcher; a flag where the text is unclear."
    },
    (("reject",), "calls"): {
        "late_write": "An output changed after its call ended.",
        "static_buffer": "An output that is still in use overlaps the output of another call, or "
        "changed in a later one.",
    },
    (("reject",), "processes"): {
        "loop_taken_over": "Its own code answers the judge in place of the worker."
    },
    (("reject",), "time"): {
        "disturbs_others": "It ran while it should have stood still, where it can slow others down "
        "or work ahead of its time; or it tried to start a process while it was timed.",
        "early_work": "On a GPU, copying its arguments up takes longer than the reference's.",
        "late_work": "On a GPU, delivering its outputs takes longer than the reference's.",
        "physical_floor": "Its time is impossible on this machine, or below what its way of "
        "calling takes; the evidence has the arithmetic.",
    },
    (("reject",), "values"): {
        "constant_output": "It gives the same outputs for all inputs.",
        "replayed_output": "It gives the outputs of an earlier call.",
        "hard_coded_shape": "It is wrong on a held-out shape of its task.",
    },
    (("flag",), "values"): {
        "stale_argument": "It computes with an argument's values from an earlier call, as a stale "
        "cache of weights does.",
        "precision_downgrade": "On fresh inputs its error against float64 is that of the next "
        "lower precision, and 16 times eager torch's.",
        "uninitialised_read": "Its outputs depend on unwritten memory, in a tensor or beside one; "
        "other bytes there make them wrong.",
        "unstable_maths": "On extreme inputs its error against float64 is 2⁻⁹ (float32) or more, "
        "and 64 times eager torch's.",
    },
    (("flag",), "calls"): {
        "out_of_bounds": "With every tensor between pages without access, its calls end by "
        "SIGSEGV: it accesses memory beyond a tensor, or of a freed one. The evidence has its "
        "worker's account.",
        "unlike_direct": "Its passes fail or are wrong in a graph that is called directly.",
    },
    (("flag",), "processes"): {
        "background_thread": "It ends with more threads than torch and a kernel need.",
        "background_process": "It left processes beside its worker, which were ended before it was "
        "timed.",
    },
    (("flag",), "text"): {
        "evasion": "Its code hides the names that it uses, as by exec or pickles.",
        "pattern_called": "Its code calls the pattern that it replaces.",
        "timer_patch": "Its code replaces functions that measure or compare.",
        "patched_library": "Its code replaces a function or a setting of a library.",
        "patched_proxy": "Its code changes how torch.fx records a pattern.",
        "harness_detection": "Its code looks for signs of a judge, as the type of its tensors, "
        "the count of references, or the collector's state.",
        "thread": "Its code starts threads.",
        "process": "Its code starts processes or sends signals.",
        "network": "Its code opens network connections.",
        "introspection": "Its code looks at frames, at the collector's objects, or at memory.",
        "persistence": "Its code writes files.",
        "overloaded_comparison": "Its code overloads comparison, or torch's handling of its "
        "objects.",
        "nested_compile": "Its code calls a compiler of torch.",
    },
    (("note",), "text"): {
        "foreign_code": "Its code calls into libraries that the judge does not read."
    },
    (("note",), "calls"): {
        "null_rewrite": "A replacement runs the ops of its own pattern, and no faster kernel."
    },
    (("note",), "processes"): {
        "not_fenced": "It could not run with its tensors between pages without access."
    },
    (("note",), "values"): {
        "held_out_shape": "On a held-out shape it does not match, or raises an exception that says "
        "so.",
        "nothing_varies": "No output of its graph depends on varying inputs, so a remembered "
        "answer is correct.",
    },
}
"""The meaning of every finding, by its severities and its proof."""
CATALOGUE: dict[str, FindingKind] = {
    name: FindingKind(name, severities, proof, meaning)
    for (severities, proof), meanings in _MEANINGS.items()
    for name, meaning in meanings.items()
}
"""Every kind of finding, by name."""


def finding(name: str, evidence: str, place: str | None = None) -> Finding:
    """Return a finding of the catalogue with its usual severity."""
    return Finding(CATALOGUE[name].severities[0], name, evidence, place)


def forbids_running(findings: Iterable[Finding]) -> bool:
    """Return whether the text of a candidate alone proves that it cheats."""
    return any(finding.weight == "reject" and finding.place is not None for finding in findings)
