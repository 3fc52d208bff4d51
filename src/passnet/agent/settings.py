"""What attempts are made with: the author, its limits, and how it is judged."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from passnet.judge.candidate import CallMode
from passnet.judge.settings import JudgeSettings, RunSettings

SEARCH_TURNS = 12
"""Evaluations of a search that is given no other number."""

AuthorName: TypeAlias = Literal["llm", "compiler", "search", "trained"]


@dataclass(frozen=True)
class AgentLimits:
    """What an attempt may take; None is no limit.

    Args:
        turns: times that the llm speaks (50 as published), or evaluations of the search.
        tokens: of input and output together.
        seconds: of the attempt as a whole.
        cost: in dollars, where the provider's prices are known.
    """

    turns: int = 50
    tokens: int | None = None
    seconds: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class LlmSettings:
    """Which llm, where, and how it is asked.

    Args:
        name: as Inspect names it, `provider/name`; `scripted`, or `scripted/FILE`, plays a script.
        base_url: of an OpenAI-compatible endpoint, if it is not the provider's own.
        temperature: None leaves it to the provider.
        max_output_tokens: of one answer; None leaves it to the provider.
        num_retries: how often a request that failed is made again.
        timeout_s: for the answer to one request, which then has failed.
        price: dollars for a million tokens of input and of output, for limits of cost; None where
            Inspect knows them, or nobody asks.
        emulates_tools: describe tools in the text, for endpoints that know none.
    """

    name: str
    base_url: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    num_retries: int = 3
    timeout_s: int = 600
    price: tuple[float, float] | None = None
    emulates_tools: bool = False


@dataclass(frozen=True)
class AgentSettings:
    """How attempts are made and judged.

    Args:
        llm: which one, for the author "llm".
        run: how states are judged.
        call: how the rewritten graph is called.
        seed: of the first attempt at a task; the others have the numbers after it.
        num_attempts: how many at each task.
        is_guarded: submit nothing that scores no better than leaving the graph alone.
        is_judged_anew: measure what is submitted once more at the end, so that its score is not
            the luckiest of several.
        kernels: for attacks on the judge, the folder with an honest pass folder for each task, from
            which its attempts begin; see `agent.attack`.
        num_layouts: of a range of a net how many of its first ops only give arguments the order in
            memory that they have there; None where tasks are no ranges.
        checkpoint: the folder of the llm of the author "trained".
    """

    author: AuthorName
    llm: LlmSettings | None = None
    run: RunSettings = field(default_factory=lambda: RunSettings(JudgeSettings(rules="strict")))
    call: CallMode = "compiled"
    limits: AgentLimits = AgentLimits()
    seed: int = 0
    num_attempts: int = 1
    is_guarded: bool = False
    is_judged_anew: bool = True
    kernels: str | None = None
    num_layouts: int | None = None
    checkpoint: str | None = None
