"""The parts of a run that is divided, to be worked on apart and put together."""

import hashlib
from dataclasses import dataclass

from passnet.errors import InputError


@dataclass(frozen=True, slots=True)
class RunShard:
    """The part `number`, from 1, of `total` parts of a run."""

    number: int = 1
    total: int = 1

    def has(self, name: str) -> bool:
        """Whether an item is in this part.

        Examples:
            >>> [RunShard(number, 3).has("an item") for number in (1, 2, 3)].count(True)
            1
        """
        digest = hashlib.sha256(name.encode()).hexdigest()
        return int(digest[:8], 16) % self.total + 1 == self.number


WHOLE = RunShard()


def shard_of(text: str) -> RunShard:
    """The part that a text such as 2/8 names.

    Raises:
        InputError: it names none.
    """
    number, slash, total = text.partition("/")
    if not (slash and number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
        raise InputError(f"--shard {text}: give two numbers such as 2/8, from 1/8 to 8/8")
    return RunShard(int(number), int(total))
