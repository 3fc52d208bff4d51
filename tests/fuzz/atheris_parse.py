"""Coverage-guided fuzzing of the readers of graph files with atheris; not run by pytest.

    pip install atheris
    python -m tests.fuzz.atheris_parse program -max_total_time=300 [FOLDER OF TEXTS]
    python -m tests.fuzz.atheris_parse meta -max_total_time=300 [FOLDER OF TEXTS]

Anything but a `GraphError`, and a program or a spec that its print does not give back, stops the
run with the text that caused it. Texts that reach new code are kept in the folder, where one is
given; start it with real graph files.
"""

import sys

import atheris

with atheris.instrument_imports(include=["passnet.graph"]):
    from passnet.errors import GraphError
    from passnet.graph.text.meta import parse_meta, render_meta
    from passnet.graph.text.parse import parse_program
    from passnet.graph.text.render import render_program


def program(data: bytes) -> None:
    """The claim about `model.py`."""
    try:
        parsed = parse_program(data.decode(errors="surrogateescape"))
    except GraphError:
        return
    assert parse_program(render_program(parsed)) == parsed


def meta(data: bytes) -> None:
    """The claim about `weight_meta.py`."""
    try:
        specs = parse_meta(data.decode(errors="surrogateescape"), "weight_meta.py")
    except GraphError:
        return
    assert parse_meta(render_meta(specs), "weight_meta.py") == specs


def main() -> None:
    """Fuzz the reader that the first argument names; the rest is for libFuzzer."""
    claim = {"program": program, "meta": meta}[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], claim)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
