"""Renaming of a row: its symbols, values and arguments get other names."""

import random
import re

NUM_SYMBOLS = {"N": 16, "F": 6, "a": 12}
"""Names that symbols of a kind are drawn from, at least."""

_NAME = re.compile(r"^(N|F|a|t)(\d+)(\.?)$")


def renamed(prompt: str, answer: str, draw: random.Random) -> tuple[str, str]:
    """Rename sizes, real numbers, arguments and values in a prompt and its answer.

    Values keep their order and start at another number; the others are shuffled. Half of the time
    the two low floats, which are computed alike, are exchanged.
    """
    words = set(prompt.split())
    numbers: dict[str, list[int]] = {"N": [], "F": [], "a": [], "t": []}
    for word in words:
        if match := _NAME.match(word):
            numbers[match[1]].append(int(match[2]))
    names: dict[str, str] = {}
    for kind, used in numbers.items():
        count = max(used, default=-1) + 1
        if kind == "t":
            offset = draw.randint(0, max(0, 20 - count))
            names |= {f"t{n}": f"t{n + offset}" for n in range(count)}
        else:
            drawn = draw.sample(range(max(count, NUM_SYMBOLS[kind])), count)
            names |= {f"{kind}{n}": f"{kind}{new}" for n, new in enumerate(drawn)}
    if draw.random() < 0.5:
        names |= {"bfloat16": "float16", "float16": "bfloat16"}
    return _replaced(prompt, names), _replaced(answer, names)


def _replaced(text: str, names: dict[str, str]) -> str:
    return "\n".join(
        " ".join(_word(word, names) for word in line.split(" ")) for line in text.split("\n")
    )


def _word(word: str, names: dict[str, str]) -> str:
    bare = word.removesuffix(".") if word.startswith("N") else word
    return names.get(bare, bare) + word[len(bare) :]
