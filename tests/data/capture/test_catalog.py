"""The catalog: what may be asked for, what is near, and that each library is captured."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from click.testing import CliRunner

from passnet.cli import main
from passnet.data.capture.catalog import LIBRARIES, library, names_of
from passnet.data.capture.entry_capture import capture_entry
from passnet.data.capture.entry_selection import resolve
from passnet.data.capture.record import CaptureSettings
from passnet.errors import InputError
from tests.data.capture import own

SMALL = {
    "timm": "test_vit",
    "transformers": "DistilBertModel",
    "torchvision": "squeezenet1_1",
    "diffusers": "vae-tiny",
    "smp": "fpn-resnet18",
    "x_transformers": "",
    "vit_pytorch": "",
    "monai": "basic-unet-2d",
    "torch_geometric": "gcn",
    "ultralytics": "yolov8n-cls",
    "open_clip": "RN50",
    "neuralforecast": "DLinear",
    "kornia": "HardNet",
    "torch_rechub": "DeepFM",
    "braindecode": "EEGNet",
    "pypots": "imputation-SAITS",
    "torchaudio": "wav2letter-mfcc",
    "speechbrain": "xvector",
    "torchrl": "mlp",
    "torchani": "ani",
    "fair_esm": "esm2-8m",
    "litgpt": "pythia-14m",
    "zuko": "nice",
    "neuraloperator": "fno-1d",
}
"""A small entry of each library; the first one where none is named."""


def installed(name):
    try:
        return bool(names_of(name))
    except InputError:
        return False


def test_every_library_says_what_it_adds_and_needs():
    for name in LIBRARIES:
        module = library(name)
        assert len(module.ADDS) > 20 and module.PACKAGES
        assert name == "hub" or name in SMALL


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_an_entry_of_each_library_is_captured_and_computes_what_its_net_does(name):
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    names = names_of(name)
    assert len(names) == len(set(names)) and names == names_of(name)
    entry = f"{name}/{SMALL[name]}" if f"{name}/{SMALL[name]}" in names else names[0]
    record = capture_entry(entry, CaptureSettings()).record
    assert record.status == "captured", record.error
    assert record.constraints is not None and record.constraints.error is None
    assert record.constraints.runnable
    assert record.task and record.versions


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
        (["timm"], [], "--all timm"),
        (["resnet18"], [], "give LIBRARY/ENTRY"),
        (["nowhere.py:make"], [], "no such file"),
        ([], ["hub"], "cannot be captured as a whole"),
    ],
)
def test_what_cannot_be_meant_says_what_to_do(patterns, libraries, text):
    with pytest.raises(InputError, match=text):
        resolve(patterns, libraries)


def test_a_library_that_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "passnet.data.capture.catalog.x_transformers", None)
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


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torchvision") is None, reason="torchvision is not installed")
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
