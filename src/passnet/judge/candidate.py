"""A candidate: a baseline or a pass folder, and how it is called."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from passnet.errors import InputError

CandidateKind: TypeAlias = Literal[
    "eager", "null", "inductor", "inductor-precise", "aoti", "passes", "module"
]
"""eager: the graph as it is. null: the pipeline of a pass folder without a pass. inductor:
torch.compile's default. inductor-precise: the same, with eager torch's roundings between ops. aoti:
a package of AOTInductor. passes: the passes of a folder. module: Python
code in the folder `passes`, with the loader that `LOADER_FILE` there names."""

LOADER_FILE = "loader.json"
"""The file with the name ("module:function") of a function of the folder and a graph's arguments,
which returns the call of a candidate of kind module."""
INDUCTOR_KINDS = ("inductor", "inductor-precise", "aoti")
"""The kinds that Inductor compiles whole."""
CallMode: TypeAlias = Literal["compiled", "direct", "guarded"]
"""compiled: through torch.compile, with its guards; a package, which has none, as torch calls it.
direct: the rewritten graph itself. guarded: the rewritten graph behind checks of our own, see
`passes.guarded_call`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A baseline or pass folder to measure against the reference, under a name unique in its run.

    `root` holds the pass folders of all tasks, or is `passes` itself; None for a baseline.

    Raises:
        InputError: a baseline has passes.
    """

    name: str
    kind: CandidateKind
    passes: str | None = None
    call: CallMode = "compiled"
    residual: Literal["eager", "inductor", "inlined"] = "eager"
    root: str | None = None

    def __post_init__(self) -> None:
        if not self.has_code and not (self.passes is None and self.root is None):
            raise InputError(f"candidate {self.name[:80]!r}: a {self.kind} has no passes")

    @property
    def has_code(self) -> bool:
        """Return whether it brings code of its own, which is inspected, confined and hashed."""
        return self.kind in ("passes", "module")

    def is_direct_call_of(self, other: "Candidate") -> bool:
        """Return whether it calls directly what another candidate calls in whatever way."""
        return self == replace(other, name=self.name, call="direct")


REFERENCE = Candidate("reference", "eager", call="direct")
"""The reference of every candidate: the graph, run eagerly."""
