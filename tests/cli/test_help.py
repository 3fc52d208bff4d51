"""What every command says of itself, and that its choices are those of the code behind it."""

import subprocess
import sys
from collections.abc import Iterator
from typing import get_args

import click
import pytest
from click.testing import CliRunner

from passnet.agent.settings import AuthorName
from passnet.agent.trajectories.selection import TrainingForm
from passnet.bench.cluster import JUDGES
from passnet.bench.groups import GROUPINGS
from passnet.cli import main
from passnet.cli.terminal.fields import DTYPES, KINDS
from passnet.core.jobs.executors import EXECUTORS
from passnet.data.mine import dtypes, subgraphs
from passnet.judge.inspection.rules import RULES
from passnet.judge.processes.sandbox import SandboxName
from passnet_audit.suites.admission import INPUT_KINDS
from passnet_exchange.export import Layout

CONTEXT = click.Context(main)


def commands(path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    command = command_of(path)
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(CONTEXT):
        yield from commands((*path, name))


def command_of(path: tuple[str, ...]) -> click.Command:
    command: click.Command = main
    for name in path:
        assert isinstance(command, click.Group)
        member = command.get_command(CONTEXT, name)
        assert member is not None, name
        command = member
    return command


def options_of(path: tuple[str, ...]) -> dict[str, click.Option]:
    parameters = [item for item in command_of(path).params if isinstance(item, click.Option)]
    return {name: option for option in parameters for name in option.opts}


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_option_is_described_in_a_whole_sentence(path: tuple[str, ...]) -> None:
    for name, option in options_of(path).items():
        assert option.help and option.help[0].isupper() and option.help.endswith("."), name


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_names_every_default(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*path, "--help"])
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for option in options_of(path).values():
        if isinstance(option.default, str | int | float) and not option.is_flag:
            assert f"[default: {option.default}" in text, option.name


def test_no_help_imports_torch() -> None:
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom passnet.cli import main\n"
        "for words in sys.argv[1:]:\n"
        "    assert CliRunner().invoke(main, [*words.split(), '--help']).exit_code == 0, words\n"
        "    assert 'torch' not in sys.modules, words\n"
    )
    words = [" ".join(path) for path in commands()]
    child = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr


CHOICES = {
    "bench run --sandbox": ("auto", *get_args(SandboxName)),
    "bench run --rules": RULES,
    "bench score --by": GROUPINGS,
    "suite make --executor": EXECUTORS,
    "bench run --executor": JUDGES,
    "agent run --executor": JUDGES,
    "suite make --kind": subgraphs.SUBGRAPH_KINDS,
    "suite check --distribution": (*INPUT_KINDS, "both"),
    "dataset build --dtype": (*dtypes.DTYPES, "none"),
    "dataset export --layout": get_args(Layout),
    "agent run --author": get_args(AuthorName),
    "agent export --form": get_args(TrainingForm),
}


@pytest.mark.parametrize("words", CHOICES)
def test_choices_are_those_of_the_code(words: str) -> None:
    *path, name = words.split()
    assert sorted(options_of(tuple(path))[name].type.choices) == sorted(CHOICES[words])  # type: ignore[attr-defined]


def test_kinds_and_dtypes_are_those_that_are_mined() -> None:
    assert (subgraphs.SUBGRAPH_KINDS, dtypes.DTYPES) == (KINDS, DTYPES)


MISSPELT = {
    "a command": (("bench", "rn"), "no command 'rn'; there are apply, "),
    "a group": (("suit", "list"), "; did you mean suite?"),
    "an option": (("bench", "score", "x", "--jsn"), "; did you mean --json?"),
    "an option of all": (("--verson",), "; did you mean --version?"),
    "a choice": (("bench", "score", "x", "--by", "dtpe"), "; did you mean dtype?\n"),
    "a backend": (
        ("optimize", "torchvision/resnet18", "--backend", "grph"),
        "; did you mean graph",
    ),
    "a net": (("optimize", "torchvision/resnet_18x"), "; did you mean torchvision/resnet18"),
    "an author": (("optimize", "torchvision/resnet18", "--author", "serch"), "did you mean search"),
    "a suite": (("suite", "list", "demo-smal"), "; did you mean demo-small or"),
    "a held-out suite": (("bench", "run", "--held-out", "demo-held"), "demo-held-out"),
    "a task": (("suite", "show", "demo", "--task", "rms_nrm"), "; did you mean rms_norm?"),
    "a baseline": (("bench", "run", "--candidate", "inductr"), "; did you mean inductor or"),
    "a flag": (("bench", "run", "--candidate", "null@drect"), "; did you mean @direct?"),
    "another flag": (("bench", "run", "--candidate", "null@garded"), "; did you mean @guarded?"),
    "a library": (("extract", "--list", "tim/resnet18"), "; did you mean timm?"),
    "a bare library": (("extract", "--list", "torchvison"), "; did you mean torchvision or"),
    "a library of --catalog": (("extract", "--list", "--catalog", "tim"), "; did you mean timm?"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_what_is_misspelt_is_asked_back(name: str) -> None:
    words, question = MISSPELT[name]
    out = ("--out", "unused") if words[:2] == ("bench", "run") else ()
    result = CliRunner().invoke(main, [*words, *out])
    assert result.exit_code == 2
    assert question in result.stderr and "; did you mean " in result.stderr


def test_a_misspelt_path_is_asked_back(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep" / "passes").mkdir(parents=True)
    words = ["bench", "run", "--out", "unused", "--candidate", "deep/pases"]
    assert "; did you mean deep/passes?" in CliRunner().invoke(main, words).stderr
    (tmp_path / "deep" / "mine.parquet").touch()
    result = CliRunner().invoke(main, ["suite", "list", "deep/mne.parquet"])
    assert "; did you mean deep/mine.parquet?" in result.stderr


def test_nothing_is_asked_where_nothing_is_near() -> None:
    result = CliRunner().invoke(main, ["suite", "show", "demo", "--task", "zzz"])
    assert "did you mean" not in result.stderr and "; there are " in result.stderr


def test_passnet_is_its_name_however_it_is_started() -> None:
    words = [sys.executable, "-m", "passnet.cli"]
    for more in (["--version"], ["--help"], ["bench", "nothing"]):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr
        assert "passnet" in text.split("\n")[0] and "python -m" not in text


def test_shipped_suites_are_listed_only_without_a_name() -> None:
    assert "; shipped: " in CliRunner().invoke(main, ["suite", "list"]).stdout
    assert "shipped" not in CliRunner().invoke(main, ["suite", "list", "demo-small"]).stdout
