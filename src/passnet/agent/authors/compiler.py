"""The compiler as author: what Inductor generates for the graphs of a task, as a pass folder.

Every op that Inductor computes in a kernel of its own is replaced, in ranges as long as can be; ops
that call a library stay. Nothing is tuned: this is what a compiler does for a graph, within the
rules of passes, as a baseline for authors and a teacher of theirs.
"""

from __future__ import annotations

from passnet.agent.authors.task_compiler import TaskCompiler
from passnet.agent.session import Session
from passnet.agent.tools import Submit


def compiler_author(session: Session, seed: int = 0) -> None:
    """Write what Inductor generates, and submit.

    A graph whose result is wrong, or whose kernel does not compile, gets the next way of
    `ways_of`; a pass that stays wrong is left out where another still matches.

    Args:
        session: with the task.
        seed: not used, as nothing is drawn.

    Raises:
        AuthorError: Inductor computes no op of the task in a kernel of its own, or there is no
            language for the task's device.
    """
    TaskCompiler(session).make_correct()
    session.act(Submit())
