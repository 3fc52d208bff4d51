"""The LLMs of attempts, opened through Inspect, and asked again where an endpoint fails."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from inspect_ai import model as ai
from rich.text import Text
from tenacity import RetryCallState, RetryError, wait_exponential_jitter

from passnet.agent.authors.scripted_llm import SCRIPTED_LLM
from passnet.agent.settings import LlmSettings
from passnet.errors import AuthorError, InputError, boundary

KEY_VARIABLE = "OPENAI_API_KEY"
NONSENSE = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors that providers raise over an answer that they cannot read."""
NO_KEY = "none"
"""The key for an own endpoint that asks for none."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 3, 30 * 60
"""Pauses before the first and the last of many repeated requests."""


def open_llms(settings: LlmSettings) -> list[ai.Model]:
    """Return the LLM that settings name, once for each endpoint.

    Raises AuthorError without its provider, key or package; InputError for a name without its
    provider, or settings that need an endpoint, without one.
    """
    provider, _, name = settings.name.partition("/")
    if settings.emulates_tools and not settings.base_urls:
        raise InputError("--emulate-tools is for your own endpoint: give --base-url too")
    if provider == "scripted" and settings.base_urls:
        raise InputError("the LLM scripted has no endpoint: leave --base-url out")
    if provider != "scripted" and not name:
        raise InputError(f"--llm {settings.name}: give PROVIDER/NAME, such as openai/NAME")
    return [_open_llm(settings, address) for address in settings.base_urls or (None,)]


def _open_llm(settings: LlmSettings, base_url: str | None) -> ai.Model:
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
    elif base_url is not None and settings.emulates_tools:
        name = f"openai-api/passnet/{llm}"
        arguments = {"emulate_tools": True}
        api_key = os.environ.get(KEY_VARIABLE) or NO_KEY
    elif base_url is not None and provider == "openai":
        arguments = {"responses_api": False}
        is_local = urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1")
        if not os.environ.get(KEY_VARIABLE) and is_local:
            api_key = NO_KEY
    try:
        with boundary(AuthorError, f"llm {settings.name}"):
            llm = ai.get_model(
                name,
                config=config,
                base_url=base_url,
                api_key=api_key,
                memoize=False,
                **arguments,
            )
    except AuthorError as cause:
        message = getattr(cause.__cause__, "message", None)
        if type(cause.__cause__).__name__ != "PrerequisiteError":  # which Inspect does not export
            raise
        lines = Text.from_markup(str(message)).plain.removeprefix("ERROR:").split("\n")
        text = ": ".join(line.strip().removesuffix(".") for line in lines if line.strip())
        hint = "; set one, or give the --base-url of a server" if "_API_KEY" in text else ""
        raise AuthorError(f"llm {settings.name}: {text}{hint}") from cause
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


def _distrust(api: Any) -> None:
    """Let Inspect alone repeat requests, also those whose answer is none of the API.

    The provider's client repeats none by itself. A server's `Retry-After` is kept. An endpoint that
    refuses what is no stream, or answers with one unasked, is asked for streams from then on.
    """
    decide, generate = api.should_retry, api.generate
    pause = wait_exponential_jitter(initial=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=1)
    client: Any = getattr(api, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0
        getattr(api, "model_args", {})["max_retries"] = 0  # for clients that Inspect opens later

    def should_retry(cause: Exception) -> bool | ai.RetryDecision:
        return True if isinstance(cause, NONSENSE) else decide(cause)

    def wait(state: RetryCallState) -> float:
        cause = state.outcome.exception() if state.outcome else None
        decision = should_retry(cause) if isinstance(cause, Exception) else False
        asked_s = decision.retry_after if isinstance(decision, ai.RetryDecision) else None
        return min(max(asked_s or 0.0, pause(state)), LONGEST_PAUSE_S)

    async def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            result = await generate(*args, **kwargs)
        except Exception as cause:  # noqa: BLE001 (boundary: raised again below)
            result = cause
        output = result[0] if isinstance(result, tuple) else result
        if isinstance(output, Exception):
            if re.search(r"\bstream", str(output)) and _ask_for_streams(api):
                raise ValueError(f"it wants to stream: {output}") from output
            if output is result:
                raise output
        if isinstance(output, ai.ModelOutput) and not output.choices:
            raise ValueError("there is no choice in it")
        return result

    async def note_streams(response: Any) -> None:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            _ask_for_streams(api)

    api.should_retry, api.retry_wait, api.generate = should_retry, lambda: wait, checked
    http: Any = getattr(api, "http_client", None)
    if http is not None:
        http.event_hooks["response"].append(note_streams)


def _ask_for_streams(api: Any) -> bool:
    """Have an endpoint asked for streams; return whether it was not before and can be."""
    for name in ("streaming", "stream"):  # of Inspect's providers
        if hasattr(api, name):
            was_asked = getattr(api, name) is True
            setattr(api, name, True)
            return not was_asked
    return False


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
