"""Nets of transformers: configurations that are reduced, mended, and what nets are called with."""

from types import SimpleNamespace

import pytest
import torch

from passnet.data.capture.net import NetInput
from passnet.data.capture.weights import FakeWeights

pytest.importorskip("transformers")

from passnet.data.capture.catalog import transformers as nets
from passnet.data.capture.catalog.transformers.configs import (
    MAX_LAYERS,
    match_widths,
    reduce_layers,
    reduce_settings,
    required_settings,
)
from passnet.data.capture.catalog.transformers.inputs import inputs, omitted_inputs


def test_the_number_of_stages_is_no_depth():
    settings = {"depths": [6] * 6, "num_heads": [6] * 6, "num_layers": 6}
    reduce_settings(settings, [])
    assert settings["depths"] == [MAX_LAYERS] * 6
    assert len(settings["num_heads"]) == settings["num_layers"] == 6


def test_numbers_of_layers_that_follow_from_their_kinds_are_made_anew():
    config, changes = reduce_layers(nets_config("Zamba2Config"))
    kinds = config.layers_block_type
    assert changes and len(kinds) == MAX_LAYERS
    assert config.hybrid_layer_ids == [at for at, kind in enumerate(kinds) if kind == "hybrid"]
    assert config.hybrid_layer_ids


def nets_config(name):
    nets.import_transformers()
    import transformers

    return getattr(transformers, name)()


def test_a_net_of_two_that_read_is_not_asked_which_one_does():
    assert match_widths(nets_config("MusicgenConfig")) == ()


def test_what_is_said_of_a_class_goes_before_what_is_said_of_its_family():
    family = SimpleNamespace(model_type="esm")
    assert required_settings("EsmModel", family)["vocab_size"] == 33
    assert required_settings("BeitForSemanticSegmentation", family) == {
        "out_indices": [3, 5, 7, 11]
    }
    assert required_settings("BertModel", SimpleNamespace(model_type="bert")) == {}


class Hearing(torch.nn.Module):
    """Sees, and hears, but not what it is given to hear."""

    def get_image_features(self, pixel_values, image_grid_thw):
        return torch.ones(8, 4)

    def get_audio_features(self, input_features):
        raise ValueError("sounds of another length")

    def forward(self, input_ids, pixel_values, image_grid_thw, input_features):
        return input_ids


class Settings(SimpleNamespace):
    """A configuration of one part."""

    def get_text_config(self):
        return self


def test_a_sound_that_does_not_fit_takes_no_image_with_it():
    config = Settings(
        model_type="hearing", vocab_size=50, image_token_id=7, audio_token_id=8, patch_size=2
    )
    arguments = inputs(Hearing(), config)
    assert set(arguments) == {"input_ids", "pixel_values", "image_grid_thw"}
    assert (arguments["input_ids"].value == 7).sum() == 8


CALLED = [
    "BeitForSemanticSegmentation",
    "HunYuanVLTextModel",
    "LukeForEntityPairClassification",
    "LxmertModel",
    "MimiEncoderModel",
    "PPOCRV5ServerDetModel",
    "Qwen3OmniMoeCode2WavTransformerModel",
    "Siglip2VisionModel",
    "SpeechT5Model",
    "Swin2SRForImageSuperResolution",
    "TimesFmModel",
    "XCLIPVisionModel",
    "Zamba2Model",
]
"""A class for each kind of mend, of those that are quick to build."""


@pytest.mark.parametrize("name", CALLED)
def test_a_net_whose_defaults_do_not_suffice_can_be_called(name):
    with FakeWeights():
        net = nets.build(name)
    with torch.no_grad():
        net.module(**{key: argument.value for key, argument in net.kwargs.items()})


def test_a_net_that_sees_and_is_called_with_text_alone_says_so():
    class Net(torch.nn.Module):
        def forward(self, input_ids, pixel_values=None, input_features=None):
            return input_ids

    arguments = dict.fromkeys(("input_ids", "input_features"), NetInput(torch.ones(1, 2)))
    assert omitted_inputs(Net(), arguments) == ("pixel_values",)
    assert omitted_inputs(Net(), {**arguments, "pixel_values": NetInput(torch.ones(1))}) == ()
    assert omitted_inputs(torch.nn.Linear(1, 1), arguments) == ()
