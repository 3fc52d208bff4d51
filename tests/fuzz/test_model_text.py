"""Any text or bytes as `model.py`: a program that prints to itself or a GraphError; none runs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st

from passnet.errors import GraphError
from passnet.graph.arguments import MAX_DEPTH
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph
from passnet.graph.text.files import read_sample
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.text.syntax import MAX_TOKENS, parse_tree
from tests.fuzz.hostile import (
    ARGUMENTS,
    FSTRING_OF_LINES,
    LINES,
    fuzz,
    mutations,
    nothing_runs,
    peak_of,
)
from tests.graph.programs import programs, text_of

BYTES_PER_TOKEN = 1024
"""Most memory of a syntax tree for a word or sign, as `MAX_TOKENS` says."""


def read(text: str) -> bool:
    """Whether the text is taken; the claim about every text is checked on the way."""
    with nothing_runs():
        try:
            program = parse_program(text, "m.py")
        except GraphError as error:
            assert str(error).startswith("m.py:") and "\n" not in str(error)[:5]
            return False
        again = parse_program(render_program(program), "again.py")
        fingerprints(Graph(program, ()))
    assert again == program
    return True


def test_the_watch_sees_what_runs(tmp_path: Path):
    for action in ("compile('1', 'x', 'eval')", "open(place, 'w')", "__import__('os').getcwd"):
        code = compile(action, "test", "eval")
        with pytest.raises(AssertionError, match="reading ran something"), nothing_runs():
            eval(code, {"place": tmp_path / "x"})


PRINTED = programs(max_ops=5).map(render_program)


@fuzz(250, mutations(PRINTED))
def test_a_changed_program_is_taken_or_refused(text: str):
    read(text)


@fuzz(150, st.text(max_size=80) | st.lists(st.sampled_from(LINES + ARGUMENTS)).map("\n".join))
def test_any_text_is_taken_or_refused(text: str):
    read(text)


@fuzz(60, st.text(max_size=40))
def test_any_text_within_a_program_is_taken_or_refused(text: str):
    for within in (text_of(text), text_of(f"x = torch.relu({text})"), text_of(params=f"a: {text}")):
        read(within)


@pytest.mark.parametrize("text", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_a_hostile_expression_is_taken_as_data_or_refused(text: str):
    for line in (f"x = {text}", f"x = torch.relu({text})", f"x = a[{text}]", f"a[{text}] = b"):
        read(text_of(line))
    read(text_of(params=f"a: {text}"))
    read(text_of(returns=f"({text}, )"))


@pytest.mark.parametrize("text", LINES, ids=range(len(LINES)))
def test_a_hostile_line_is_taken_as_data_or_refused(text: str):
    for whole in (text_of(text), f"{text}\n{text_of()}", text_of() + text):
        read(whole)


def folder_of(model: bytes) -> Path:
    """A graph directory with this `model.py`."""
    folder = Path(tempfile.mkdtemp())
    (folder / "model.py").write_bytes(model)
    (folder / "graph_net.json").write_text("{}")
    (folder / "weight_meta.py").write_text("")
    return folder


VALID = text_of(params="", returns="()").replace("self, ", "self").encode()


@st.composite
def changed_bytes(draw: st.DrawFn) -> bytes:
    """A valid file with some bytes replaced."""
    data = bytearray(VALID)
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@fuzz(100, st.binary(max_size=60) | changed_bytes() | st.just(b"\xef\xbb\xbf" + VALID))
def test_any_bytes_as_model_py_are_taken_or_refused(data: bytes):
    folder = folder_of(data)
    with nothing_runs():
        try:
            sample = read_sample(folder)
        except GraphError as error:
            assert str(error).startswith(str(folder))
            return
    assert sample.graph.tensors == ()


def test_what_is_no_file_is_refused(tmp_path: Path):
    folder = folder_of(VALID)
    for name in ("model.py", "weight_meta.py", "graph_net.json", "input_meta.py"):
        path = folder / name
        content = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        with pytest.raises(GraphError, match=f"{name}: not a file"):
            read_sample(folder)
        path.unlink()
        path.symlink_to("/dev/zero")
        with pytest.raises(GraphError, match=f"{name}: a link to outside"):
            read_sample(folder)
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    assert read_sample(folder).graph.tensors == ()


FOUND = {
    "a device of too many digits": text_of(f"x = a.to(device('cuda:{'9' * 5000}'))"),
    "a call of a huge number": text_of(f"x = torch.relu(0x{'f' * 5000}(1))"),
    "an annotation that is a huge number": text_of(params=f"a: 0x{'f' * 5000}"),
    "a keyword in other letters": text_of("𝐝𝐞𝐟 = a"),
    "an argument that is a keyword in other letters": text_of(params="a, 𝐢𝐟"),
    "a name of an argument that is a keyword": text_of("x = torch.relu(a, 𝐢𝐟=1)"),
    "an attribute that is a keyword": text_of("x = a.𝐢𝐟"),
    "None in other letters": text_of("𝐍𝐨𝐧𝐞 = a"),
    "lists nested deeply": text_of(returns="[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + ","),
    "an in-place operator on a literal": text_of("x = operator.iadd(1, a)"),
}
"""Texts that once crashed, or printed to what did not parse."""


@pytest.mark.parametrize("claim", FOUND)
def test_refused_since_it_was_found(claim: str):
    assert not read(FOUND[claim])


@pytest.mark.parametrize(
    "text",
    [
        text_of("x = torch.add(a, -nan)"),
        text_of(params=f"a: {FSTRING_OF_LINES}"),
        text_of(params="a: 'text', b: dict[str, int] | None"),
        text_of(returns="[" * MAX_DEPTH + "]" * MAX_DEPTH + ","),
    ],
)
def test_taken_and_printed_to_itself(text: str):
    assert read(text)


def test_odd_escapes_are_read_without_a_warning(recwarn: pytest.WarningsRecorder):
    assert read(text_of("x = torch.einsum('\\d', a)"))
    assert not recwarn.list


@pytest.mark.parametrize("unit", ["1,", "x;", "x\n", "()\n", "[],", "a.b;", "pass\n", "a<", "x="])
def test_a_syntax_tree_takes_no_more_than_stated(unit: str):
    num_units = 2**14
    text = unit * num_units + ("1" if unit in ("a<", "x=") else "")
    _, peak = peak_of(lambda: parse_tree(text, "m.py"))
    assert peak < BYTES_PER_TOKEN * num_units * len(unit.replace("pass", "p"))


def test_a_text_of_too_many_words_is_refused_before_it_is_parsed():
    text = "x;" * (MAX_TOKENS // 2 + 1)

    def refused() -> str:
        with pytest.raises(GraphError) as caught:
            parse_program(text, "m.py")
        return str(caught.value)

    message, peak = peak_of(refused)
    assert message == f"m.py: {MAX_TOKENS + 2} words and signs, more than {MAX_TOKENS}"
    assert peak < 2**20
