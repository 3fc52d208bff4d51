"""The LLMs of attempts, opened through Inspect."""

import os
from typing import Any
from urllib.parse import urlsplit

from inspect_ai import model as ai
from rich.text import Text
from tenacity import RetryError

from passnet.agent.authors.scripted_llm import SCRIPTED_LLM
from passnet.agent.settings import LlmSettings
from passnet.errors import AuthorError, InputError, boundary

KEY_VARIABLE = "OPENAI_API_KEY"
NONSENSE = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that providers raise over an answer that they cannot read."""
NO_KEY = "none"
"""The key for an own endpoint that asks for none."""


def open_llm(settings: LlmSettings) -> ai.Model:
    """Return the LLM that settings name; AuthorError without its provider, key or package."""
    config = ai.GenerateConfig(
        temperature=settings.temperature,
        max_tokens=settings.max_output_tokens,
        max_retries=settings.num_retries,
        attempt_timeout=settings.timeout_s,
    )
    name, api_key = settings.name, None
    arguments: dict[str, Any] = {}
    provider, _, llm = name.partition("/")
    if provider == "scripted":
        name = SCRIPTED_LLM
        arguments = {"script": llm} if llm else {}
    elif settings.base_url is not None and settings.emulates_tools:
        name = f"openai-api/passnet/{llm}"
        arguments = {"emulate_tools": True}
        api_key = os.environ.get(KEY_VARIABLE) or NO_KEY
    elif settings.base_url is not None and provider == "openai":
        arguments = {"responses_api": False}
        is_local = urlsplit(settings.base_url).hostname in ("localhost", "127.0.0.1", "::1")
        if not os.environ.get(KEY_VARIABLE) and is_local:
            api_key = NO_KEY
    try:
        with boundary(AuthorError, f"llm {settings.name}"):
            llm = ai.get_model(
                name,
                config=config,
                base_url=settings.base_url,
                api_key=api_key,
                memoize=False,
                **arguments,
            )
    except AuthorError as cause:
        message = getattr(cause.__cause__, "message", None)
        if type(cause.__cause__).__name__ != "PrerequisiteError":  # which Inspect does not export
            raise
        text = Text.from_markup(" ".join(str(message).split())).plain
        raise AuthorError(f"llm {settings.name}: {text}") from cause
    if settings.base_url is not None:
        _distrust(llm.api)
    return llm


def named(llm: ai.Model) -> str:
    """Return the name of an LLM and, if known, its address."""
    address = llm.api.base_url
    return f"llm {llm} at {address}" if address else f"llm {llm}"


def request_failure(cause: Exception) -> str:
    """Return why the last of several requests to an LLM failed, in words."""
    last, again = cause, ""
    if isinstance(cause, RetryError) and isinstance(cause.__cause__, Exception):
        last, num_asked = cause.__cause__, cause.last_attempt.attempt_number
        again = f"asked {num_asked} times, the last time " if num_asked > 1 else ""
    if isinstance(last, NONSENSE):
        return f"{again}its answer was none of the API ({type(last).__name__}: {last})"
    return f"{again}{type(last).__name__}: {last}"


def _distrust(api: ai.ModelAPI) -> None:
    """Let Inspect repeat a request whose answer is none of the API, like any other failed one."""
    decide = api.should_retry

    def should_retry(cause: Exception) -> bool | ai.RetryDecision:
        return True if isinstance(cause, NONSENSE) else decide(cause)

    api.should_retry = should_retry  # type: ignore[method-assign]


def check_price(llm: ai.Model, settings: LlmSettings) -> None:
    """Check that the settings or Inspect know the prices of tokens, or raise InputError."""
    if settings.price is not None:
        per_input, per_output = settings.price
        cost = ai.ModelCost(
            input=per_input, output=per_output,
            input_cache_read=per_input, input_cache_write=per_input,
        )  # fmt: skip
        ai.set_model_info(str(llm), ai.ModelInfo(cost=cost))
    info = ai.get_model_info(llm)
    if info is None or info.cost is None:
        raise InputError(
            f"the prices of {settings.name} are not known, so its cost cannot be limited; give "
            "--price INPUT OUTPUT, dollars for a million tokens of each"
        )
