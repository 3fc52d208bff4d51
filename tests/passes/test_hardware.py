"""What is read of a processor tells apart those for which other code is compiled."""

from collections.abc import Callable, Iterator

import pytest

from passnet.core.hardware import multiplies_float16, processor_facts, processor_name

Say = Callable[[str], None]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Iterator[Say]:
    """Sets what the kernel says of the processors."""

    def set_text(text: str) -> None:
        processor_facts.cache_clear()
        monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: text)

    yield set_text
    processor_facts.cache_clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16\n", False),
        ("flags\t\t: fpu avx512f avx512_fp16\n", True),
        ("Features\t: fp asimd fphp asimdhp\n", True),
        ("processor\t: 0\n", True),
    ],
)
def test_the_kernel_says_what_a_processor_can(text: str, expected: bool, say: Say) -> None:
    say(text)
    assert multiplies_float16() is expected


EPYC = "cpu family\t: {}\nmodel\t\t: {}\nmodel name\t: AMD EPYC\n\nmodel\t: 9\n"


def test_two_generations_of_a_name_are_two_processors(say: Say) -> None:
    say(EPYC.format(25, 1))
    assert processor_name() == "AMD EPYC (family 25, model 1)"
    say(EPYC.format(26, 2))
    assert processor_name() == "AMD EPYC (family 26, model 2)"


def test_a_processor_without_a_name_has_its_numbers(say: Say) -> None:
    say("CPU implementer\t: 0x41\nCPU part\t: 0xd40\n")
    assert processor_name().endswith("(implementer 0x41, part 0xd40)")


def test_a_processor_of_which_nothing_is_said_has_a_name(say: Say) -> None:
    say("")
    assert processor_name() and "(" not in processor_name()
