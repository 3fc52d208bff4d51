"""Answers that a grammar does not allow."""

from passnet_loops.language.grammar import DONE, AnswerGrammar


def first_misfit(grammar: AnswerGrammar, answer: str) -> tuple[int, str, frozenset[str]] | None:
    """Return the first word that is not allowed, with position and allowed words, if any."""
    course = grammar.words()
    allowed = next(course)
    for position, word in enumerate((*answer.split(), DONE)):
        if word not in allowed:
            return position, word, allowed
        try:
            allowed = course.send(word)
        except StopIteration:
            break
    return None
