"""The recipes for GPUs have keys that the libraries know, and say whether they ever ran."""

import sys
from contextlib import suppress
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.data.capture.mismatched_wheels import import_torchvision
from recipes.gpu.train import CLASSES, main, read_recipe, trainer_classes

FOLDER = Path(__file__).parents[2] / "recipes" / "gpu"
PATHS = sorted(FOLDER.glob("*.yaml"))


def unknown_keys(kind, keys):
    return sorted(set(keys) - {field.name for field in fields(kind) if field.init})


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_recipe_that_did_not_run_on_a_gpu_says_so(path):
    recipe = read_recipe(path)
    assert recipe.ran_on == "nothing"
    assert "was not run on a GPU" in path.read_text().splitlines()[1]
    turns = [stage.get("max_tool_calling_iterations") for stage in recipe.stages]
    assert recipe.trainer == "sft" or turns == sorted(turns) and turns[0] == 3 and turns[-1] == 50


@pytest.fixture
def libraries():
    for name in ("trl", "peft"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed (pip install trl peft)")
    with suppress(ImportError):
        import_torchvision()  # transformers imports it where it is there


@pytest.mark.slow
@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_key_of_a_recipe_is_one_of_the_libraries(path):
    recipe = read_recipe(path)
    arguments, _ = trainer_classes(recipe.trainer)
    keys = [*recipe.arguments, *(key for stage in recipe.stages for key in stage)]
    assert unknown_keys(arguments, keys) == []
    assert unknown_keys(arguments, ["max_lenght"]) == ["max_lenght"]
    for stage in recipe.stages:
        on_cpu = {"use_cpu": True, "bf16": False, "use_vllm": False, "output_dir": "x"}
        known = {key: value for key, value in on_cpu.items() if not unknown_keys(arguments, [key])}
        arguments(**{**recipe.arguments, **stage, **known})
    if recipe.lora is not None:
        from peft import LoraConfig

        LoraConfig(**recipe.lora)
    if recipe.accelerate:
        from accelerate.commands.launch import launch_command_parser

        options = {action.dest for action in launch_command_parser()._actions}
        of_a_file = {"compute_environment", "distributed_type", "fsdp_config"}
        assert {*recipe.accelerate, *recipe.accelerate["fsdp_config"]} - options == of_a_file


def test_every_trainer_is_one_that_a_recipe_uses():
    assert {read_recipe(path).trainer for path in PATHS} == set(CLASSES)


@pytest.mark.parametrize(
    ("recipe", "words", "says"),
    [
        ("qwen3-4b-lora-sft", (), "give --data"),
        ("qwen3-4b-lora-grpo", (), "set PASSNET_JUDGE_TOKEN"),
        (
            "qwen3-4b-lora-grpo",
            ("--suite", "passbench-v1-small"),
            "a benchmark is not for training",
        ),
        ("qwen3-4b-lora-sft", ("begun",), "add --resume to go on"),
    ],
)
def test_a_training_that_cannot_begin_says_what_to_do(
    recipe, words, says, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("PASSNET_JUDGE_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("PASSNET_JUDGE_TOKEN", raising=False)
    if "--suite" in words:
        monkeypatch.setenv("PASSNET_JUDGE_TOKEN", "secret")
    if words == ("begun",):
        (tmp_path / "stage-0").mkdir()
        words = ()
    path = str(FOLDER / f"{recipe}.yaml")
    monkeypatch.setattr(sys, "argv", ["train.py", path, "--out", str(tmp_path), *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2 and says in capsys.readouterr().err


def test_stages_differ_in_turns_and_answers():
    recipe = read_recipe(FOLDER / "qwen3-4b-lora-grpo.yaml")
    assert [recipe.turns(number) for number in range(3)] == [3, 12, 50]
    assert recipe.num_steps == (200, 200, 100)
    assert recipe.num_answers(8) == 8 * 500 * 4 * 16
