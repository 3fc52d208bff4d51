"""A trained llm as author of passes: it answers the prompt of each graph in the loops form.

An answer takes a fraction of a second, so several are drawn. Those are passed over that a run of
their loops shows to be wrong; of the others the judge tells which is right.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import Submit
from passnet.agent.authors.compiler import evaluate_files
from passnet.errors import AuthorError, GraphError, InputError
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet_loops.language.expand import answer_sources
from passnet_loops.language.prompt import Prompt, loops_prompt
from passnet_loops.language.run_answer import not_shown_wrong
from passnet_loops.policy import Policy, open_policy

TRAINED = "trained"
"""The name of this author; with a checkpoint `trained:FOLDER`."""

NUM_DRAWN = 16
NUM_TRIED = 3
"""Answers that an llm gives to a prompt, and how many of them, the likeliest that are not shown to
be wrong, are tried at most."""


def trained_program(checkpoint: Path) -> Callable[..., None]:
    """The author of a checkpoint, as a function of a session and a seed.

    Raises:
        InputError: there is no llm, or TRL is missing.
    """
    _policy(checkpoint)
    return partial(trained_author, checkpoint=checkpoint)


def program_of_name(name: str) -> Callable[..., None] | None:
    """The author that `trained:FOLDER` names; None for another name.

    Raises:
        InputError: it names no folder, or one without an llm.
    """
    kind, _, folder = name.partition(":")
    if kind != TRAINED:
        return None
    if not folder:
        raise InputError("the author trained needs a checkpoint: give trained:FOLDER")
    return trained_program(Path(folder))


@cache
def _policy(checkpoint: Path) -> Policy:
    return open_policy(checkpoint)


def trained_author(session: Session, seed: int = 0, *, checkpoint: Path) -> None:
    """Write what a trained llm answers, the likeliest answer first, until all graphs are correct.

    Raises:
        AuthorError: none of its answers can be made a pass folder.
    """
    policy = _policy(checkpoint)
    prompts = [_prompt(graph.graph) for graph in session.task.graphs]
    by_text = {prompt.text: prompt for prompt in prompts if prompt is not None}
    if not by_text:
        raise AuthorError(f"task {session.task.name}: the loops form has no prompt for it")
    different = list(by_text.values())
    ranked = policy.ranked(different, NUM_DRAWN, seed)
    answers = {
        text: not_shown_wrong(prompt, given)[:NUM_TRIED]
        for (text, prompt), given in zip(by_text.items(), ranked, strict=True)
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


def _prompt(graph: object) -> Prompt | None:
    try:
        return loops_prompt(graph)  # type: ignore[arg-type]
    except (GraphError, InputError):
        return None


class _AnswerWriter:
    """The folder of the answers that are tried now, one for each graph."""

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
        """The ranges of the answer to a prompt, or of the next that can be expanded."""
        answers = self._answers[prompt.text]
        while self._numbers[prompt.text] < len(answers):
            try:
                return answer_sources(prompt, answers[self._numbers[prompt.text]])
            except InputError as cause:
                self.reason = str(cause)
                self._numbers[prompt.text] += 1
        return []

    def next_answers(self) -> bool:
        """Go on to the next answer for prompts whose graphs fail; False where there is none."""
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
