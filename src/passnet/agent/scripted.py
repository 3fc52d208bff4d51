"""An llm that plays a written trajectory, turn by turn: for tests, and to see how an attempt goes.

A script is a TOML file: a list `turn`, each with a `text` and a list `call`, each with a `tool` and
its `arguments`.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from passnet.agent.attempt import ToolCall
from passnet.errors import InputError

SCRIPTS = Path(__file__).parent / "scripts"
DEFAULT_SCRIPT = SCRIPTS / "gelu_tanh.toml"
"""For the task of that name in the suite `demo`: a miss, a wrong kernel, a fix, a faster one."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call of a tool; `arguments` may be text, which is given as it is."""

    tool: str
    arguments: dict[str, Any] | str = ""


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """What the llm says in a turn, and calls."""

    text: str
    call: tuple[ScriptedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """All that an llm says; after the last turn it says nothing more."""

    turn: tuple[ScriptedTurn, ...]


def read_script(path: Path) -> Script:
    """The script in a file.

    Raises:
        InputError: it is missing, not TOML, or of another form.
    """
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise InputError(f"{path}: not a script of an llm: {cause}") from cause
    try:
        return msgspec.convert(value, Script)
    except msgspec.ValidationError as cause:
        raise InputError(f"{path}: not a script of an llm: {cause}") from cause


def scripted_calls(script: Script, number: int) -> tuple[str, tuple[ToolCall, ...]]:
    """What the llm says in turn `number`, from 0, and the calls that it makes.

    After the last turn it has nothing to say.
    """
    if number >= len(script.turn):
        return "I have nothing more to say.", ()
    turn = script.turn[number]
    calls = tuple(
        ToolCall(
            f"call-{number}-{place}",
            item.tool,
            item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments),
        )
        for place, item in enumerate(turn.call)
    )
    return turn.text, calls
