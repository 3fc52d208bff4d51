"""The catalogs of further libraries: described, and their nets are captured where installed."""

import pytest

from passnet.data.capture.catalog import RECIPES, library
from tests.data.capture.catalogs import assert_captured

SMALL = {
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
    "transformers_variants": "BertModel+hidden_act-relu2",
    "transformer_lens": "",
    "one_net_text": "palm-pytorch",
    "asteroid": "conv-tasnet-gLN",
    "peft": "BertModel+lora",
    "torchtune": "llama2-grouped",
    "torchscale": "encoder",
    "pytorchcv": "ror3_56_cifar10",
    "birder": "mobilenet_v4_s",
    "one_net_sequences": "Conformer",
}
"""A small entry of each library; the first one where none is named."""


def test_every_recipe_says_what_it_adds_and_needs():
    for name in RECIPES:
        module = library(name)
        assert len(module.ADDS) > 20 and module.PACKAGES
    assert set(SMALL) == set(RECIPES)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_an_entry_of_each_recipe_is_captured_and_computes_what_its_net_does(name):
    assert_captured(name, SMALL[name])
