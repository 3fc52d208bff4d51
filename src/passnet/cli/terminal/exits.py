"""Exit codes of commands, and the sentence of a failure."""

import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from passnet.cli.terminal.output import say
from passnet.errors import PassnetError

if TYPE_CHECKING:
    from passnet.bench.scores import CandidateScore

FAILURE = 1
USAGE_ERROR = 2
SIGNALLED = 128
"""A command that a signal ends has this and the number of the signal as its exit code, as shells
have it.
"""

CODES = {
    0: "done, whatever the scores are",
    FAILURE: "nothing came of it, a check failed, or an AS is below --fail-under",
    USAGE_ERROR: "an argument, option or file is wrong, or cannot be read or written",
    SIGNALLED + signal.SIGINT: "interrupted by Ctrl-C",
    SIGNALLED + signal.SIGTERM: "ended by SIGTERM",
}
"""What the exit codes of all commands mean."""

HELP = "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {text}" for code, text in CODES.items())


def fail(sentence: str) -> NoReturn:
    """End the command with a sentence and exit code 1."""
    say(f"passnet: {sentence}", err=True)
    sys.exit(FAILURE)


@contextmanager
def ending_at_own_errors(file: str) -> Iterator[None]:
    """End the command with exit code 1 at an error of code in a user's file.

    It prints the frames from there on; errors that are no bugs of the file pass through.
    """
    try:
        yield
    except PassnetError:
        raise
    except Exception as error:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != file:
            frames = frames.tb_next
        if frames is None:
            raise
        traceback.print_exception(error.with_traceback(frames))
        sys.exit(FAILURE)


def fail_below(
    least: float | None, scores: Iterable["CandidateScore"], untimed: Iterable[str]
) -> None:
    """End the command with exit code 1 where a candidate has an AS below the least, or none, as all
    its trials are unstable. Baselines count only where there is nothing else.
    """
    if least is None:
        return
    from passnet.judge.desk.candidates import BASELINES

    by_name: dict[str, float | None] = {score.candidate: score.suite.score for score in scores}
    by_name |= dict.fromkeys(untimed)
    own = {name: score for name, score in by_name.items() if name.split("@")[0] not in BASELINES}
    low = [
        f"{name} has no AS, as no trial of it could be timed"
        if score is None
        else f"{name} has AS {score:.3f}"
        for name, score in (own or by_name).items()
        if score is None or score < least
    ]
    if low:
        fail(f"{'; '.join(low)}; --fail-under asks for {least:g}")
