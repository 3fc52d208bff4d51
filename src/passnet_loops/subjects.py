"""The subgraphs of training rows that answers are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from passnet.agent.graph_text import op_times_us
from passnet.graph.spec import Graph
from passnet.graph.text.files import graph_from_row
from passnet.train.rewards.reward import replaced_share
from passnet_loops.language.answer_text import parse_answer
from passnet_loops.language.expand import span_of
from passnet_loops.language.prompt import Prompt, loops_prompt

NUM_SUBJECTS = 512
"""Subgraphs that are cached with their prompts: each gets several answers."""


@dataclass(frozen=True)
class Subject:
    """A subgraph that answers are asked for."""

    graph: Graph

    @cached_property
    def prompt(self) -> Prompt:
        """Return its prompt.

        Raises:
            GraphError, InputError: It has none.
        """
        return loops_prompt(self.graph)

    @cached_property
    def least_us(self) -> list[float]:
        """Return the least time of each op of the prompt, in microseconds.

        Raises:
            GraphError: Shapes cannot be inferred.
        """
        return op_times_us(self.prompt.graph)


@lru_cache(NUM_SUBJECTS)
def subject_of(program: str, tensors: str, full: str) -> Subject:
    """Return the subgraph of a row of training data, from the columns that hold it."""
    return Subject(graph_from_row(program, tensors, full[:16]))


def share_of_answer(prompt: Prompt, text: str, least_us: Sequence[float]) -> float:
    """Return the share of the least time of a graph's ops, `least_us`, that an answer replaces.

    Raises:
        InputError: The text is no answer to the prompt.
    """
    replaced = {op for fused in parse_answer(text) for op in range(*span_of(prompt, fused))}
    return replaced_share(least_us, replaced)
