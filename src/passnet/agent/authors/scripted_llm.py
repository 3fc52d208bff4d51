"""An LLM that plays a written trajectory, turn by turn: for tests, and to show an attempt.

A script is a TOML file: a list `turn`, each with a `text` and a list `call` of `tool` and
`arguments`.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from inspect_ai import model as ai
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from passnet.core.records.untrusted import read_untrusted_text
from passnet.errors import InputError

SCRIPTED_LLM = "passnet/scripted"
"""The name of the LLM for Inspect."""
DEFAULT_SCRIPT = Path(__file__).parent / "scripts" / "gelu_tanh.toml"
"""For the task of that name in the suite `demo`: a miss, a wrong kernel, a fix, a faster one."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call of a tool; `arguments` may be text, which is passed on unchanged."""

    tool: str
    arguments: dict[str, Any] | str = ""


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """The text and the calls of a turn."""

    text: str
    call: tuple[ScriptedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """All turns of an LLM; after the last it stays silent."""

    turn: tuple[ScriptedTurn, ...]


def read_script(path: Path) -> Script:
    """Read the script in a file, or raise InputError."""
    try:
        return msgspec.convert(tomllib.loads(read_untrusted_text(path)), Script)
    except (OSError, ValueError) as cause:  # text, TOML, or form is wrong
        raise InputError(f"{path}: not a script of an LLM: {cause}") from cause


@ai.modelapi(name="passnet")
class ScriptedLlm(ai.ModelAPI):
    """A player of a script. It is a class because Inspect wants one."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: ai.GenerateConfig = ai.GenerateConfig(),  # noqa: B008 (the signature is Inspect's)
        script: str = str(DEFAULT_SCRIPT),
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._script = read_script(Path(script))

    async def generate(
        self,
        input: list[ai.ChatMessage],  # noqa: A002 (the name is Inspect's)
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: ai.GenerateConfig,
    ) -> ai.ModelOutput:
        """Return the next turn of the script, empty after the last one."""
        number = sum(isinstance(message, ai.ChatMessageAssistant) for message in input)
        turn = ScriptedTurn("I have nothing more to say.")
        if number < len(self._script.turn):
            turn = self._script.turn[number]
        calls = [_tool_call(f"call-{number}-{index}", call) for index, call in enumerate(turn.call)]
        message = ai.ChatMessageAssistant(content=turn.text, tool_calls=calls)
        choice = ai.ChatCompletionChoice(
            message=message, stop_reason="tool_calls" if calls else "stop"
        )
        return ai.ModelOutput(model=self.model_name, choices=[choice], usage=ai.ModelUsage())


def _tool_call(identity: str, call: ScriptedCall) -> ToolCall:
    """Return a call as a server gives it, which may be broken."""
    arguments: Any = call.arguments
    try:
        if isinstance(arguments, str):
            arguments = json.loads(arguments or "{}")
        problem = None if isinstance(arguments, dict) else f"not an object: {call.arguments}"
    except json.JSONDecodeError as cause:
        problem = f"not JSON ({cause}): {call.arguments}"
    arguments = {} if problem else arguments
    return ToolCall(id=identity, function=call.tool, arguments=arguments, parse_error=problem)
