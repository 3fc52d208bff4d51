"""Arguments that are made only where forward cannot do without."""

from __future__ import annotations

import numpy as np
import torch

from passnet.extract.catalog.transformers.arguments import (
    MEL_FRAMES,
    TEXT_LENGTH,
    Maker,
    input_features,
    input_ids,
    past_values,
    patches,
    video,
)
from passnet.extract.catalog.transformers.config_view import ConfigView
from passnet.extract.net import NetInput, floats, ones, tokens

SVTR_WIDTH = 40
"""Columns of the features of a line of text that is to be read."""


def input_features_mask(look: ConfigView) -> NetInput:
    """That all frames are heard."""
    made = input_features(look)
    frames = made.value.shape[made.axes.index("frames")]
    return ones(1, frames, axes=("batch", "frames"))


def hidden_states(look: ConfigView) -> NetInput:
    """What a part of a larger net takes: patches with a grid, else features of its width."""
    if "grid_thw" in look.params:
        return patches(look)
    if type(look.net).__name__.endswith("SVTR"):
        first = next(item for item in look.net.modules() if isinstance(item, torch.nn.Conv2d))
        channels = first.in_channels
        axes = ("batch", str(channels), "height", "width")
        return floats(1, channels, 1, SVTR_WIDTH, axes=axes)
    return embeddings(look)


def embeddings(look: ConfigView) -> NetInput:
    """Features of the width of a net."""
    keys = ("hidden_size", "d_model")
    if look.family.startswith("granite_speech"):
        keys = ("input_dim",)
    width = int(look.find(*keys, default=256))
    return floats(1, TEXT_LENGTH, width, axes=("batch", "sequence", str(width)))


def query_embeds(look: ConfigView) -> NetInput:
    """What asks an image."""
    width = int(look.config.hidden_size)
    return floats(1, TEXT_LENGTH, width, axes=("batch", "queries", str(width)))


def bool_masked_pos(look: ConfigView) -> NetInput:
    """Which patches of a video are hidden: every second."""
    frames = int(look.find("num_frames", default=1)) // int(look.find("tubelet_size", default=1))
    height, width = look.size
    count = max(1, frames) * (height // look.patch) * (width // look.patch)
    return NetInput(torch.from_numpy(np.arange(count)[None] % 2 == 1), ("batch", "patches"))


def past_values_padding(look: ConfigView) -> NetInput:
    """That nothing of a time series is filled in."""
    made = past_values(look)
    return NetInput(torch.from_numpy(np.zeros(made.value.shape, np.int64)), made.axes)


def latents(look: ConfigView) -> NetInput:
    """A sound as its encoder gives it."""
    width = int(look.config.hidden_size)
    return floats(1, width, TEXT_LENGTH, axes=("batch", str(width), "frames"))


def audio_mel(look: ConfigView) -> NetInput:
    """A mel spectrogram."""
    bins = int(look.config.input_feat_size)
    return floats(1, MEL_FRAMES, bins, axes=("batch", "frames", "mels"))


def audio_mel_mask(look: ConfigView) -> NetInput:
    """That no frame is filled in."""
    return NetInput(torch.from_numpy(np.zeros((1, MEL_FRAMES), np.bool_)), ("batch", "frames"))


def merge_sizes(look: ConfigView) -> NetInput:
    """How many patches along each side become one."""
    return NetInput(torch.from_numpy(np.array([1])), ("images",))


def spectrogram(look: ConfigView) -> NetInput:
    """A mel spectrogram that is to become a sound."""
    bins = int(look.find("model_in_dim", default=80))
    return floats(1, MEL_FRAMES, bins, axes=("batch", "frames", "mels"))


def retrieved_ids(look: ConfigView) -> NetInput:
    """The documents that were found, each before the question."""
    length = 2 * TEXT_LENGTH
    return tokens(int(look.text("vocab_size", 1000)), int(look.config.n_docs), length)


def codes(look: ConfigView) -> NetInput:
    """Sound tokens, of all codebooks."""
    books = int(look.config.num_quantizers)
    made = tokens(int(look.config.codebook_size), books, TEXT_LENGTH)
    return NetInput(made.value[None], ("batch", str(books), "sequence"))


def _first(look: ConfigView) -> NetInput:
    return NetInput(torch.from_numpy(np.zeros((1, 1), np.int64)), ("batch", "1"))


REQUIRED: dict[str, Maker] = {
    "pixel_values_videos": video,
    "hidden_states": hidden_states,
    "inputs_embeds": embeddings,
    "query_embeds": query_embeds,
    "input_features_mask": input_features_mask,
    "inputs": input_ids,
    "spectrogram": spectrogram,
    "bool_masked_pos": bool_masked_pos,
    "past_values_padding": past_values_padding,
    "latents": latents,
    "audio_mel": audio_mel,
    "audio_mel_mask": audio_mel_mask,
    "merge_sizes": merge_sizes,
    "freq": _first,
    "spkr_id": _first,
    "lang_id": _first,
    "codes": codes,
}
"""Arguments that are given only where forward cannot do without."""
