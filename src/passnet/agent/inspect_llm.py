"""The llms of Inspect's that attempts are made with, and the scripted one as one of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCost,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    get_model,
    get_model_info,
    modelapi,
    set_model_info,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from passnet.agent.scripted import DEFAULT_SCRIPT, read_script, scripted_calls
from passnet.agent.settings import LlmSettings
from passnet.errors import AuthorError, InputError, boundary

SCRIPTED = "scripted"
KEY_VARIABLE = "OPENAI_API_KEY"
NO_KEY = "none"
"""Sent to an endpoint of one's own that asks for no key."""


@modelapi(name="passnet")
class ScriptedLlm(ModelAPI):
    """Plays a script; see `agent.scripted`. It is a class because Inspect wants one."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (the signature is Inspect's)
        script: str = str(DEFAULT_SCRIPT),
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._script = read_script(Path(script))

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 (the name is Inspect's)
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """The next turn of the script."""
        number = sum(isinstance(item, ChatMessageAssistant) for item in input)
        text, calls = scripted_calls(self._script, number)
        message = ChatMessageAssistant(
            content=text, tool_calls=[_call(item.id, item.name, item.arguments) for item in calls]
        )
        choice = ChatCompletionChoice(
            message=message, stop_reason="tool_calls" if calls else "stop"
        )
        return ModelOutput(
            model=self.model_name,
            choices=[choice],
            usage=ModelUsage(),
        )


def _call(identity: str, name: str, arguments: str) -> ToolCall:
    try:
        value = json.loads(arguments or "{}")
    except json.JSONDecodeError as cause:
        return ToolCall(id=identity, function=name, arguments={}, parse_error=f"not JSON: {cause}")
    if not isinstance(value, dict):
        return ToolCall(id=identity, function=name, arguments={}, parse_error="not an object")
    return ToolCall(id=identity, function=name, arguments=value)


def open_llm(settings: LlmSettings) -> Model:
    """The llm that settings name.

    Raises:
        AuthorError: no such provider, no key, or no package for it.
    """
    config = GenerateConfig(
        temperature=settings.temperature,
        max_tokens=settings.max_output_tokens,
        max_retries=settings.num_retries,
        timeout=settings.timeout_s,
    )
    name, api_key = settings.name, None
    arguments: dict[str, Any] = {}
    provider, _, rest = name.partition("/")
    if provider == SCRIPTED:
        name = "passnet/scripted"
        arguments = {"script": rest} if rest else {}
    elif settings.base_url is not None:
        if provider == "openai":
            arguments["responses_api"] = False
            if not os.environ.get(KEY_VARIABLE) and _is_own(settings.base_url):
                api_key = NO_KEY
        if settings.emulates_tools:
            name = f"openai-api/passnet/{rest}"
            arguments = {"emulate_tools": True}
            api_key = api_key or os.environ.get(KEY_VARIABLE) or NO_KEY
    try:
        with boundary(AuthorError, f"llm {settings.name}"):
            return get_model(
                name,
                config=config,
                base_url=settings.base_url,
                api_key=api_key,
                memoize=False,
                **arguments,
            )
    except AuthorError as cause:
        if isinstance(cause.__cause__, PrerequisiteError):
            text = " ".join(str(cause.__cause__.message).split())
            raise AuthorError(f"llm {settings.name}: {_unmarked(text)}") from cause
        raise


def check_price(llm: Model, settings: LlmSettings) -> None:
    """See that the cost of what an llm says can be known.

    Raises:
        InputError: neither the settings nor Inspect have prices.
    """
    if settings.price is not None:
        paid_in, paid_out = settings.price
        cost = ModelCost(
            input=paid_in, output=paid_out, input_cache_read=paid_in, input_cache_write=paid_in
        )
        set_model_info(str(llm), ModelInfo(cost=cost))
    info = get_model_info(llm)
    if info is None or info.cost is None:
        raise InputError(
            f"the prices of {settings.name} are not known, so its cost cannot be limited; give "
            "--price INPUT OUTPUT, dollars for a million tokens of each"
        )


def _is_own(url: str) -> bool:
    """Whether an address is of this machine."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _unmarked(text: str) -> str:
    """A text without rich's marks."""
    from rich.text import Text

    return Text.from_markup(text).plain
