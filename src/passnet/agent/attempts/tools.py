"""The tools of an author: their names, their descriptions, and their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import msgspec

from passnet.errors import ActionError, no_such


@dataclass(frozen=True, slots=True)
class View:
    """Show a file of the pass folder with line numbers, or without a name the list of its files."""

    name: str = ""
    first: int = 1
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Write a file of the pass folder, new or in place of the old one."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Exchange a piece of a file's text that is in it exactly once."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a file of the pass folder."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowGraph:
    """Show a graph of the task op by op: shapes, strides unless contiguous, bytes, the
    least time of each op on this machine, and which ops Inductor would compute together.
    """

    graph: int = 0


@dataclass(frozen=True, slots=True)
class CheckMatch:
    """Try where the passes of the folder match, without running or timing anything; for a miss,
    how near it came.
    """


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Judge the pass folder on all graphs of the task: correctness and speed, the score first."""


@dataclass(frozen=True, slots=True)
class Compare:
    """Judge the pass folder on all graphs of the task for correctness alone."""


@dataclass(frozen=True, slots=True)
class JudgeSource:
    """Show a file of the judge's source with line numbers, or without a name the list of its files.
    It cannot be changed.
    """

    name: str = ""
    first: int = 1
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Submit:
    """End the attempt. The evaluated state with the highest score is what is submitted."""


FileAction: TypeAlias = View | Create | Replace | Delete
Action: TypeAlias = FileAction | ShowGraph | CheckMatch | Evaluate | Compare | JudgeSource | Submit

TOOLS: dict[str, type[Any]] = {
    "view": View,
    "create": Create,
    "replace": Replace,
    "delete": Delete,
    "show_graph": ShowGraph,
    "check_match": CheckMatch,
    "evaluate": Evaluate,
    "submit": Submit,
}

ATTACK_TOOLS = {"judge_source": JudgeSource, **TOOLS}
"""Those of an attack on the judge."""
_ALL_TOOLS = {"compare": Compare, **ATTACK_TOOLS}
"""All tools, with those that only authors which are programs have."""
PARAMETERS: dict[str, str] = {
    "name": "File name as a list of files has it, such as FuseNorm.py in the pass folder.",
    "text": "The whole text of the file.",
    "old": "The text to look for, as it is in the file, spaces and line ends included.",
    "new": "What to put in its place.",
    "first": "The first line to show, from 1.",
    "last": "The last line to show; left out for the end of the file.",
    "graph": "Number of the graph in the table of the task, from 0.",
}
"""The meaning of each argument, in any tool."""


def parse_action(
    tool: str, arguments: str | bytes, known: Mapping[str, type[Any]] = TOOLS
) -> Action:
    """Return the action that a call of one of the `known` tools asks for, or raise ActionError."""
    try:
        values = msgspec.json.decode(arguments or b"{}")
    except (msgspec.DecodeError, RecursionError) as cause:
        raise ActionError(f"{tool}: the arguments are not JSON: {cause}") from cause
    if tool not in known:
        raise ActionError(f"there is {no_such('tool', tool[:60], known)}")
    names = [field.name for field in fields(known[tool])]
    expected = ", ".join(names) or "no arguments"
    if not isinstance(values, dict):
        raise ActionError(f"{tool}: the arguments must be an object with {expected}")
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ActionError(f"{tool}: takes no {str(unknown[0])[:60]!r}; it takes {expected}")
    try:
        return msgspec.convert(values, known[tool])
    except msgspec.ValidationError as cause:
        raise ActionError(f"{tool}: {cause}; it takes {expected}") from cause


def tool_name(action: Action) -> str:
    """The name of the tool that an action is of."""
    return next(name for name, kind in _ALL_TOOLS.items() if kind is type(action))


def tool_schemas(known: Mapping[str, type[Any]] = TOOLS) -> list[dict[str, Any]]:
    """Tools in the form of the OpenAI chat format, as training data carries them."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": " ".join((kind.__doc__ or "").split()),
                "parameters": _parameters(kind),
            },
        }
        for name, kind in known.items()
    ]


def _parameters(kind: type[Any]) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]
    properties = {
        name: {**value, "description": PARAMETERS[name]}
        for name, value in schema.get("properties", {}).items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []),
        "additionalProperties": False,
    }
