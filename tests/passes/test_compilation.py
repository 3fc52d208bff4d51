"""C++ is compiled once, and with headers that were read ahead to the same code."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from passnet.errors import PassError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.inductor.generated_code import generate
from passnet.passes.codegen.cpp_source import cpp_source
from passnet.passes.compilation import FLAGS, HEADERS_VARIABLE, INCLUDE, build, make_headers
from passnet_loops.language.expand import answer_sources
from passnet_loops.language.prompt import loops_prompt
from tests.passes.kernels import SCALE


def test_a_kernel_is_compiled_once(cache: Path) -> None:
    first = build(SCALE)
    before = first.stat()
    assert build(SCALE) == first and first.stat() == before
    assert [path.name for path in cache.iterdir()] == [first.name]


def test_another_source_is_another_kernel(cache: Path) -> None:
    assert build(SCALE) != build(SCALE + "\n// changed\n")
    assert len(list(cache.iterdir())) == 2


def test_an_error_in_a_header_names_no_folder(cache: Path) -> None:
    source = '#include "inductor_kernel.h"\nauto x = c10::div_floor_integer(1.0f, 2.0f);\n'
    with pytest.raises(PassError, match=r"compile: inductor_kernel\.h:\d+:\d+: error") as it:
        build(source)
    assert str(INCLUDE) not in str(it.value) and str(cache) not in str(it.value)


GELU = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x):
        y = torch.nn.functional.gelu(x)
        return (y,)
"""
ANSWER = "range t0 t0 for i0 N0 : t0 = exp a0 [ i0 ] put t0 [ i0 ] t0 end"


def generated_text() -> str:
    """C++ that the author `compiler` makes of Inductor's for this processor."""
    graph = Graph(parse_program(GELU, "gelu"), (TensorSpec("x", (64, 100), "float32"),))
    return cpp_source(generate(graph))


def loops_text() -> str:
    """C++ that an answer in the form `loops` is expanded to."""
    program = parse_program(GELU.replace("nn.functional.gelu", "exp"), "exp")
    prompt = loops_prompt(Graph(program, (TensorSpec("x", (6400,), "float16"),)))
    [source] = answer_sources(prompt, ANSWER)
    return source.text


@pytest.mark.parametrize("text", [generated_text, loops_text])
def test_headers_that_were_read_ahead_are_used_and_change_nothing(
    text: Callable[[], str], cache: Path, tmp_path: Path
) -> None:
    source = text()
    before = build(source).read_bytes()
    headers = make_headers()
    assert headers is not None and make_headers() == headers
    file = tmp_path / "kernel.cpp"
    file.write_text(source)
    words = [*FLAGS, "-H", f"-I{headers}", f"-I{INCLUDE}", str(file), "-o", str(tmp_path / "a.so")]
    told = subprocess.run(["g++", *words], capture_output=True, text=True, check=True).stderr
    assert told.startswith(f"! {headers}/inductor_"), "the compiler took what it has read"
    for path in cache.iterdir():
        path.unlink()
    assert build(source).read_bytes() == before


def test_a_process_is_told_where_headers_are_that_were_read_ahead(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies there is what is compiled with; what is not there is done without."""
    told = tmp_path / "told"
    monkeypatch.setenv(HEADERS_VARIABLE, str(told))
    source = '#include "passnet_kernel.h"\n'
    build(source)
    told.mkdir()
    (told / "passnet_kernel.h").write_text("#error this one\n")
    with pytest.raises(PassError, match="this one"):
        build(source + "\n")


def test_without_a_compiler_or_room_no_headers_are_read_ahead(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("CXX", str(failing))
    assert make_headers() is None
    monkeypatch.setenv("CXX", "no such compiler")
    assert make_headers() is None
    assert list((cache.parent / "headers").iterdir()) == []
