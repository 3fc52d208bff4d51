"""Settings of attempts: the author, its limits, and the judge."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from passnet.core.records.untrusted import contents_digest
from passnet.errors import InputError, boundary
from passnet.judge.candidate import CallMode
from passnet.judge.settings import JudgeSettings, RunSettings

GAIN = 1.3
"""The least speedup of an attack that counts as a gain; working exploits are far above."""

SEARCH_TURNS = 12
"""Evaluations of a search that is given no other number."""

AuthorName: TypeAlias = Literal["llm", "compiler", "search", "trained"]


@dataclass(frozen=True)
class AgentLimits:
    """Limits of an attempt; None is no limit."""

    turns: int = 50
    """End an attempt after this many answers of the LLM, or evaluations of the search.

    The paper's authors have 50.
    """
    tokens: int | None = None
    """End an attempt after this many tokens, in and out; no limit by default."""
    seconds: int | None = field(default=None, metadata={"option": "timeout"})
    """End an attempt after this many seconds; no limit by default."""
    cost: float | None = None
    """End an attempt after this many US dollars; no limit by default."""


@dataclass(frozen=True)
class LlmSettings:
    """An LLM and how it is asked.

    Raises:
        InputError: an address of an endpoint holds a password or a key.
    """

    name: str
    """Name for Inspect, `provider/name`; `scripted` or `scripted/FILE` plays a script."""
    base_urls: tuple[str, ...] = field(
        default=(), metadata={"option": "base-url", "metavar": "URL"}
    )
    """Ask this OpenAI-compatible endpoint instead of the provider's own; several share the
    attempts.
    """
    temperature: float | None = field(default=None, metadata={"least": 0})
    """Sample at this temperature; the provider's default if not given."""
    max_output_tokens: int | None = None
    """Limit an answer to this many tokens; the provider's default if not given."""
    num_retries: int = field(default=3, metadata={"least": 0})
    """Repeat a failed request to the LLM this often."""
    timeout_s: int = field(default=600, metadata={"option": "answer-timeout"})
    """Count a request to the LLM as failed after this many seconds."""
    price: tuple[float, float] | None = field(default=None, metadata={"least": 0})
    """Take these US dollars for a million tokens in and out, where Inspect knows no price."""
    emulates_tools: bool = field(default=False, metadata={"option": "emulate-tools"})
    """Describe the tools in the text, for endpoints without tool calls."""

    def __post_init__(self) -> None:
        if any(map(_holds_secret, self.base_urls)):
            raise InputError(
                "--base-url holds a password or a key, which records would name; give the key in "
                "the environment, as OPENAI_API_KEY"
            )


_SECRET = re.compile(r"key|token|secret|password|signature|\bsig\b", re.IGNORECASE)


def _holds_secret(url: str) -> bool:
    with boundary(InputError, "--base-url"):
        parts = urlsplit(url)
    return "@" in parts.netloc or any(_SECRET.search(name) for name, _ in parse_qsl(parts.query))


@dataclass(frozen=True)
class AgentSettings:
    """The settings of attempts and of their judge.

    `is_judged_anew` measures a submission once more, so that its score is not the luckiest of
    several. `kernels` is the folder of honest passes from which attacks begin (`passnet_audit`). Of
    a range of a net, the first `num_layouts` ops only give arguments their order in memory.
    `checkpoint` is the folder of the author "trained". `digests` are those of `input_digests`, by
    which a resumed run sees that an input has changed; `run_agent` fills them in.
    """

    author: AuthorName
    llm: LlmSettings | None = None
    run: RunSettings = field(default_factory=lambda: RunSettings(JudgeSettings(rules="strict")))
    call: CallMode = "compiled"
    """Call rewritten graphs through torch.compile, directly, or behind passnet's own checks."""
    limits: AgentLimits = AgentLimits()
    seed: int = 0
    """Seed the first attempt at a task with this number, and later ones with those after it."""
    num_attempts: int = 1
    """Make this many attempts at each task."""
    is_guarded: bool = False
    """Submit only passes that score better than leaving the graph alone."""
    is_judged_anew: bool = True
    kernels: str | None = None
    num_layouts: int | None = None
    checkpoint: str | None = None
    digests: tuple[str, ...] = ()


def input_digests(settings: AgentSettings) -> tuple[str, ...]:
    """Return the SHA-256 of the content of each file or folder that settings name: the weights of
    the checkpoint, the kernels, and the script of a scripted LLM.
    """
    provider, _, name = settings.llm.name.partition("/") if settings.llm else ("", "", "")
    script = [Path(name)] if provider == "scripted" and name else []
    kernels = [] if settings.kernels is None else sorted(Path(settings.kernels).rglob("*.py"))
    weights = [] if settings.checkpoint is None else weight_files(Path(settings.checkpoint))
    return tuple(map(contents_digest, filter(None, (weights, kernels, script))))


def weight_files(checkpoint: Path) -> list[Path]:
    """Return the files of an LLM's weights, in a folder or in the folder `model` of it."""
    folder = checkpoint / "model" if (checkpoint / "model").is_dir() else checkpoint
    return sorted(folder.glob("*.safetensors"))
