"""The binding of a graph's arguments to a candidate that is a module or a function in one file."""

from dataclasses import dataclass

LOADER = f"{__package__}.module:module_call"
CANDIDATE_FILE = "candidate.py"
BINDING_FILE = "binding.json"
"""The loader of such a candidate, and the files in its folder."""


@dataclass(frozen=True, slots=True)
class BoundWeight:
    """A weight of the reference: its dotted name, its argument of the graph, its digest.

    The digest is SHA-256 of its bytes, as the reference has them when it is built under the seed.
    """

    name: str
    argument: int
    digest: str


@dataclass(frozen=True, slots=True)
class ModuleBinding:
    """The call of a candidate on the arguments of a graph.

    `entry` names a class, built with `init` under `seed`, or a function. `inputs` are numbers of
    arguments, or other values. `init` and these values are texts of Python literals.
    """

    entry: str
    inputs: tuple[int | str, ...]
    weights: tuple[BoundWeight, ...] = ()
    init: str | None = None
    seed: int = 0
    is_evaluated: bool = False
    """Whether the module is in evaluation mode; else in the mode that its file leaves it in."""
