"""The catalog: what may be asked for, what is near, and that each library is captured."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

import passnet
from passnet.cli import main
from passnet.data.capture.catalog import (
    LIBRARIES,
    RECIPE_FOLDER,
    RECIPES,
    build_entry,
    canonical_name,
    library,
    names_of,
    resolve,
)
from passnet.data.capture.entry_capture import capture_entry
from passnet.data.capture.record import CaptureSettings
from passnet.errors import InputError
from tests.data.capture import own
from tests.data.capture.catalogs import assert_captured

SMALL = {"timm": "test_vit", "transformers": "DistilBertModel", "torchvision": "squeezenet1_1"}
"""A small entry of each library of the package."""


def test_every_library_says_what_it_adds_and_needs():
    for name in LIBRARIES:
        module = library(name)
        assert len(module.ADDS) > 20 and module.PACKAGES
    assert {"hub", *SMALL} == set(LIBRARIES)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_an_entry_of_each_library_is_captured_and_computes_what_its_net_does(name):
    assert_captured(name, SMALL[name])


timm_only = pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")


@timm_only
def test_names_patterns_and_other_case_are_understood():
    assert resolve(["timm/ResNet18", "timm/resnet18"]) == ["timm/resnet18"]
    assert "timm/resnet18d" in resolve(["timm/resnet18*"])
    assert len(resolve([], ["timm"])) > 1000


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")
def test_the_ending_model_may_be_left_out():
    assert resolve(["transformers/bert"]) == ["transformers/BertModel"]


@timm_only
def test_an_unknown_entry_lists_near_names():
    with pytest.raises(InputError, match=r"did you mean timm/resnet18 or .*\?"):
        resolve(["timm/resnt18"])
    with pytest.raises(InputError, match="matches 'timm/nothing"):
        resolve(["timm/nothing*"])


@pytest.mark.parametrize(
    ("patterns", "libraries", "text"),
    [
        (["nolib/net"], [], "no library 'nolib'"),
        (["timm"], [], "--catalog timm"),
        (["nets.py"], [], "give nets.py:FUNCTION"),
        (["nets.txt:make"], [], r"no Python file; give path/to/file.py:make"),
        (["/tmp:make"], [], "no Python file"),
        (["resnet18"], [], "give LIBRARY/ENTRY"),
        (["nowhere.py:make"], [], "no such file"),
        ([], ["hub"], "cannot be captured as a whole"),
    ],
)
def test_what_cannot_be_meant_says_what_to_do(patterns, libraries, text):
    with pytest.raises(InputError, match=text):
        resolve(patterns, libraries)


def test_a_function_that_wants_arguments_is_not_called(tmp_path):
    (tmp_path / "nets.py").write_text("def net(width):\n    raise SystemExit(7)\n")
    with pytest.raises(InputError, match="without arguments, missing a required argument: 'width'"):
        build_entry(f"{tmp_path}/nets.py:net")


def test_a_library_that_is_missing_says_what_to_install(broken):
    broken("x_transformers", "ModuleNotFoundError('no x_transformers')")
    with pytest.raises(InputError, match=r"pip install 'passnet\[x-transformers\]'"):
        names_of("x_transformers")


@pytest.mark.parametrize(
    "error", ["RuntimeError('no such operator')", "AttributeError('x')", "OSError('no libc10')"]
)
def test_a_broken_library_is_named_in_a_sentence(broken, error):
    broken("torch_geometric", error)
    with pytest.raises(InputError) as raised:
        resolve(["torch_geometric/gcn"])
    kind, _, text = error.partition("('")
    assert str(raised.value) == (
        f"the nets of torch_geometric cannot be imported ({kind}: {text[:-2]}); install builds of "
        f"torch_geometric that fit torch {torch.__version__}"
    )


def test_a_broken_torchvision_is_named_by_those_that_need_it_and_stops_no_other(broken):
    broken("torchvision", "RuntimeError('operator torchvision::nms is of another version')")
    with pytest.raises(InputError, match=r"nets of timm cannot .*\(torchvision cannot be imported"):
        resolve(["timm/resnet18"])
    listing = CliRunner().invoke(main, ["extract", "--list"])
    assert listing.exit_code == 0
    [line] = [line for line in listing.output.splitlines() if line.startswith("timm")]
    assert "broken: " in line and "torchvision cannot be imported" in line
    assert capture_entry(f"{own.__file__}:small", CaptureSettings()).record.status == "captured"


torchvision_only = pytest.mark.skipif(
    find_spec("torchvision") is None, reason="torchvision is not installed"
)


@torchvision_only
def test_the_two_images_of_an_optical_flow_differ():
    net: Any = library("torchvision")
    first, second = net.build("raft_small").args
    assert first.value.shape == second.value.shape and not first.value.equal(second.value)


@pytest.mark.slow
@torchvision_only
def test_a_file_that_imports_torchvision_is_captured_beside_any_build_of_torch(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(
        "import torch, torchvision\n"
        "def make():\n"
        "    return torchvision.models.squeezenet1_1(), torch.ones(1, 3, 64, 64)\n"
    )
    module = "passnet.data.capture.catalog.file"
    script = f"import sys; from {module} import build_function; build_function(*sys.argv[1:])"
    command = [sys.executable, "-c", script, f"{path}:make"]
    assert subprocess.run(command, check=False).returncode == 0


def test_a_function_of_ones_own_is_an_entry():
    [entry] = resolve([f"{own.__file__}:small"])
    assert entry == f"{own.__file__}:small"


CATALOG = """
import torch
from passnet.data.capture.net import Net, NetInput

def names():
    return ["small", "Large"]

def build(name):
    width = {"small": 2, "Large": 9}[name]
    return Net(torch.nn.Linear(4, width), (NetInput(torch.ones(1, 4)),))
"""


@pytest.fixture
def catalog(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(CATALOG)
    return path


def test_a_file_with_names_and_build_is_a_catalog(catalog):
    entries = [f"{catalog}/small", f"{catalog}/Large"]
    assert resolve([], [str(catalog)]) == entries
    assert resolve([f"{catalog}/large"]) == resolve([f"{catalog}/L*"]) == entries[1:]
    result = capture_entry(entries[1], CaptureSettings())
    assert result.record.status == "captured" and result.record.library == "nets"
    assert "9, 4" in result.rows[0].tensors or "[9,4]" in result.rows[0].tensors
    with pytest.raises(InputError, match="did you mean .*nets.py/small"):
        resolve([f"{catalog}/smal"])
    with pytest.raises(InputError, match="no such file"):
        resolve([f"{catalog.parent}/nothing.py/small"])


def test_a_file_without_names_is_no_catalog(tmp_path):
    path = tmp_path / "one.py"
    path.write_text("def build(name): ...")
    with pytest.raises(InputError, match=r"one.py: is no catalog; define names in it"):
        resolve([], [str(path)])


def test_a_recipe_is_recorded_under_the_name_of_its_library():
    assert canonical_name(str(RECIPE_FOLDER / "monai.py")) == "monai"
    assert {path.stem for path in RECIPE_FOLDER.glob("*.py")} == set(RECIPES)


def test_a_package_without_recipes_says_where_a_recorded_entry_can_be_built(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "passnet").symlink_to(Path(passnet.__file__).parent)
    script = "from passnet.data.capture.catalog import build_entry; build_entry('monai/unet')"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a checkout of its source, which has recipes/catalog/monai.py" in ran.stderr
