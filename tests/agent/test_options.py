"""An option that would be ignored is refused."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.agent.settings import LlmSettings
from passnet.cli.agent import OF_LLM, agent
from passnet.cli.terminal.fields import LLM
from passnet.errors import AuthorError, InputError


def refused(out: Path, *words: str) -> str:
    """Return why `passnet agent run` refuses some options."""
    done = CliRunner().invoke(agent, ["run", "--task", "gelu_tanh", "--out", str(out), *words])
    assert isinstance(done.exception, InputError) and not out.exists(), done.output
    return str(done.exception)


@pytest.mark.parametrize(
    ("author", "words"),
    [
        ("search", "--timeout 1"),
        ("search", "--base-url http://x/v1"),
        ("compiler", "--cost 0.5"),
        ("compiler", "--emulate-tools"),
        ("compiler", "--retries 3"),
        ("compiler", "--turns 3"),
        ("trained", "--temperature 2"),
    ],
)
def test_a_program_takes_no_option_of_an_llm(author: str, words: str, tmp_path: Path) -> None:
    option, *_ = words.split()
    said = refused(tmp_path / "out", "--author", author, *words.split())
    assert said == f"{option}: does not go with --author {author}"


def test_a_program_makes_one_attempt_at_a_time(tmp_path: Path) -> None:
    assert "leave --jobs out" in refused(tmp_path / "out", "--author", "compiler", "--jobs", "4")


def test_every_option_of_an_llm_is_known_to_be_one() -> None:
    assert len(OF_LLM) == len(LLM) + len(("tokens", "timeout", "cost"))
    words = {word for option in agent.commands["run"].params for word in option.opts}
    assert words > OF_LLM


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (LlmSettings("openai/any", emulates_tools=True), "give --base-url too"),
        (LlmSettings("scripted", ("http://x/v1",)), "leave --base-url out"),
        (LlmSettings("openai"), "give PROVIDER/NAME, such as openai/NAME"),
        (LlmSettings("openai/", ("http://x/v1",)), "give PROVIDER/NAME"),
    ],
)
def test_an_endpoint_goes_with_an_llm_that_has_one(settings: LlmSettings, text: str) -> None:
    pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
    from passnet.agent.authors.inspect_llm import open_llms

    with pytest.raises(InputError, match=text):
        open_llms(settings)


def test_an_llm_without_its_key_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai", reason="an llm as author needs the extra agent")
    from passnet.agent.authors.inspect_llm import open_llms

    for name in [name for name in os.environ if "OPENAI" in name]:
        monkeypatch.delenv(name)
    with pytest.raises(AuthorError) as caught:
        open_llms(LlmSettings("openai/any"))
    text = str(caught.value)
    assert text.startswith("llm openai/any: Unable to initialise OpenAI client: No OPENAI_API_KEY")
    assert text.endswith("; set one, or give the --base-url of a server")


@pytest.mark.parametrize(
    "url", ["https://me:secret@host/v1", "https://host/v1?api_key=secret", "http://h/?sig=secret"]
)
def test_no_key_is_in_an_address_that_records_name(url: str, tmp_path: Path) -> None:
    text = refused(tmp_path / "out", "--llm", "openai/x", "--base-url", url)
    assert "give the key in the environment" in text and "secret" not in text
    assert LlmSettings("openai/x", ("https://host/v1?api-version=2",))
    assert "Invalid IPv6" in refused(
        tmp_path / "out", "--llm", "openai/x", "--base-url", "http://["
    )
