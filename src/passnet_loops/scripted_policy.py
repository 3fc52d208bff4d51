"""A policy that gives answers written in advance: for tests, and to see how a run goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from passnet_loops.language.prompt import Prompt
from passnet_loops.policy import GREEDY, Sampling


@dataclass
class ScriptedPolicy:
    """An `AnswerPolicy` without an LLM."""

    script: Callable[[str], Sequence[str]]
    """Answers to the text of a prompt: the greedy one, then the sampled ones."""

    prompts: list[str] = field(default_factory=list)
    """Texts of all prompts so far, in the order in which they came."""

    def answers(self, prompts: Sequence[Prompt], sampling: Sampling = GREEDY) -> list[list[str]]:
        """Return the greedy answer, or the sampled ones in turn."""
        answers = []
        for prompt in prompts:
            self.prompts.append(prompt.text)
            greedy, *sampled = self.script(prompt.text)
            cycle = sampled if sampled and sampling.temperature else [greedy]
            answers.append([cycle[n % len(cycle)] for n in range(sampling.num_samples)])
        return answers

    def ranked(
        self, prompts: Sequence[Prompt], num_answers: int, sampling: Sampling
    ) -> list[list[str]]:
        """Return the distinct answers in the order of the script."""
        self.prompts += [prompt.text for prompt in prompts]
        return [list(dict.fromkeys(self.script(p.text)))[:num_answers] for p in prompts]
