"""A judge in a process of its own: `python -m passnet.train.service.judge_process SETTINGS`.

It reads items from its standard input, a JSON line each, and answers each with a line on its
standard output. It ends when its input does, or when the process that started it does.
"""

import os
import sys

from passnet.core.jobs.children import end_with_parent
from passnet.core.records.serialise import decode, encode
from passnet.train.service.judging import open_judging
from passnet.train.service.settings import ServiceSettings
from passnet.train.service.submission import JudgeItem

READY = b"ready\n"
"""What it says before the first item."""


def main(settings: str) -> None:
    """Judge items until there are no more."""
    end_with_parent()
    items, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", 0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what libraries print is no answer
    with open_judging(decode(settings, ServiceSettings)) as judge:
        answers.write(READY)
        while line := items.readline():
            answers.write(encode(judge(decode(line, JudgeItem))) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
