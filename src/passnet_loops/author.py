"""A trained LLM as an author of passes: it answers the prompt of each graph in the loops form.

An answer takes a fraction of a second, so several are sampled. Answers that fail a run of their
loops are dropped; the judge decides among the others.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import Submit
from passnet.agent.authors.compiler import evaluate_files
from passnet.errors import AuthorError, InputError
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet_loops.language.expand import answer_sources
from passnet_loops.language.prompt import Prompt, prompt_or_none
from passnet_loops.language.run_answer import not_shown_wrong
from passnet_loops.policy import AnswerPolicy, Sampling, open_policy

NUM_SAMPLES = 16
"""Answers that an LLM gives to a prompt."""

NUM_TRIED = 3
"""The most answers to a prompt that are judged, the likeliest first."""


@cache
def trained_program(checkpoint: Path) -> Callable[..., None]:
    """Return the author of a checkpoint, as a function of a session and a seed.

    Raises:
        InputError: There is no LLM, or TRL is missing.
    """
    return partial(trained_author, policy=open_policy(checkpoint))


def trained_author(session: Session, seed: int = 0, *, policy: AnswerPolicy) -> None:
    """Write an LLM's answers, the likeliest first, until all graphs are correct.

    Raises:
        AuthorError: None of its answers can become a pass folder.
    """
    prompts = [prompt_or_none(graph.graph) for graph in session.task.graphs]
    by_text = {prompt.text: prompt for prompt in prompts if prompt is not None}
    if not by_text:
        raise AuthorError(f"task {session.task.name}: the loops form has no prompt for it")
    ranked = policy.ranked(list(by_text.values()), NUM_SAMPLES, Sampling(seed=seed))
    answers = {
        text: not_shown_wrong(prompt, texts)[:NUM_TRIED]
        for (text, prompt), texts in zip(by_text.items(), ranked, strict=True)
    }
    writer = _AnswerWriter(session, prompts, answers)
    if not writer.evaluate():
        raise AuthorError(
            f"task {session.task.name}: no answer of the llm can be made a pass folder"
            f" ({writer.reason})"
        )
    while writer.next_answers() and writer.evaluate():
        pass
    session.act(Submit())


class _AnswerWriter:
    """The pass folder of the current answers, one for each graph."""

    def __init__(
        self, session: Session, prompts: list[Prompt | None], answers: dict[str, list[str]]
    ) -> None:
        self._session = session
        self._prompts = prompts
        self._answers = answers
        self._numbers = dict.fromkeys(answers, 0)
        self.reason = ""

    def evaluate(self) -> bool:
        """Write and evaluate the folder; False where there is none."""
        sources: list[RangeSource] = []
        for prompt in self._prompts:
            if prompt is not None:
                sources += self._sources(prompt)
        sources = [s for s in sources if s.lowered.span[0] >= self._session.first_op]
        if not sources:
            return False
        try:
            files = pass_folder(sources, self._session.is_strided)
        except AuthorError as cause:
            self.reason = str(cause)
            return False
        evaluate_files(self._session, files)
        return True

    def _sources(self, prompt: Prompt) -> list[RangeSource]:
        """Return the ranges of the answer to a prompt, or of the next that can be expanded."""
        answers = self._answers[prompt.text]
        while self._numbers[prompt.text] < len(answers):
            try:
                return answer_sources(prompt, answers[self._numbers[prompt.text]])
            except InputError as cause:
                self.reason = str(cause)
                self._numbers[prompt.text] += 1
        return []

    def next_answers(self) -> bool:
        """Go on to the next answer for graphs that fail; False where there is none."""
        results = {result.graph: result for result in self._session.evaluations[-1].variants}
        failing = {
            prompt.text
            for prompt, graph in zip(self._prompts, self._session.task.graphs, strict=True)
            if prompt is not None and not results[graph.name].is_correct
        }
        has_more = [t for t in failing if self._numbers[t] + 1 < len(self._answers[t])]
        for text in has_more:
            self._numbers[text] += 1
        return bool(has_more)
