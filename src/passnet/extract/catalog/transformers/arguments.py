"""How each argument of the nets of transformers is made, by its name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch

from passnet.extract.catalog.transformers.config_view import ConfigView
from passnet.extract.net import NetInput, floats, image, ones, tokens

TEXT_LENGTH = 32
DECODER_LENGTH = 16
GRID = 16
"""Patches along each side of an image of a net that takes patches of any number."""

AUDIO_SAMPLES = 16000
MEL_FRAMES = 128
FRAMES = 8

Maker: TypeAlias = Callable[[ConfigView], NetInput | None]
"""Makes one argument; None where it is not to be given."""


def text_length(look: ConfigView) -> int:
    """Of the text beside an image or alone, where the net is not made for a fixed one."""
    limit = look.text("max_position_embeddings", TEXT_LENGTH)
    return min(TEXT_LENGTH, int(limit)) if isinstance(limit, int) and limit > 0 else TEXT_LENGTH


def input_ids(look: ConfigView) -> NetInput:
    """Random text; for a multiple choice, two of them.

    Where an encoder and a decoder classify, they do so at the token that ends the text.
    """
    vocabulary = int(look.text("vocab_size", 1000))
    made = tokens(vocabulary, 1, text_length(look))
    if classifies(look):
        made.value[:, -1] = int(look.text("eos_token_id", 2))
    if "ForMultipleChoice" in type(look.net).__name__:
        return _choices(made)
    return made


def _choices(made: NetInput) -> NetInput:
    value = made.value
    both = value[:, None].expand(value.shape[0], 2, *value.shape[1:]).contiguous()
    return NetInput(both, ("batch", "2", *made.axes[1:]))


def attention_mask(look: ConfigView) -> NetInput | None:
    """That nothing of the text is hidden; the nets of sounds do without."""
    if "input_ids" not in look.params:
        return None
    ids = input_ids(look)
    return ones(*ids.value.shape, axes=ids.axes)


def classifies(look: ConfigView) -> bool:
    """Whether a net of an encoder and a decoder gives text a class."""
    return "decoder_input_ids" in look.params and "ForSequenceClass" in type(look.net).__name__


def decoder_input_ids(look: ConfigView) -> NetInput | None:
    """The text so far; what is to be classified is both."""
    if classifies(look):
        return None
    vocabulary = int(look.find("vocab_size", part="decoder") or look.text("vocab_size", 1000))
    return tokens(vocabulary, 1, DECODER_LENGTH)


def pixel_values(look: ConfigView) -> NetInput:
    """An image, or a video where that is the net's business, or patches where it takes those."""
    if "image_grid_thw" in look.params or "grid_thw" in look.params:
        return patches(look)
    if look.family in _VIDEO or "VideoClassification" in type(look.net).__name__:
        return video(look)
    made = image(1, look.channels, *look.size)
    if look.family in _TILED:
        value = made.value[:, None].expand(-1, _TILED[look.family], -1, -1, -1).contiguous()
        return NetInput(value, ("batch", "tiles", *made.axes[1:]))
    return made


def video(look: ConfigView) -> NetInput:
    """A video of as many frames as the configuration says."""
    frames = int(look.find("num_frames", "frames_per_clip", part="vision", default=FRAMES))
    axes = ("batch", "frames", str(look.channels), "height", "width")
    return floats(1, frames, look.channels, *look.size, axes=axes)


def patches(look: ConfigView) -> NetInput:
    """The patches of an image, flattened."""
    width = _patch_width(look)
    return floats(GRID * GRID, width, axes=("patches", str(width)))


def _patch_width(look: ConfigView) -> int:
    """Numbers in a patch: what the layer that embeds patches takes."""
    for name, module in look.net.named_modules():
        weight = getattr(module, "weight", None)
        embeds = re.search(r"patch_(embed|proj)|patchify", name) and "norm" not in name
        if embeds and isinstance(weight, torch.Tensor) and weight.dim() > 1:
            return math.prod(weight.shape[1:])
    temporal = int(look.find("temporal_patch_size", part="vision", default=1))
    return look.channels * temporal * look.patch**2


def grid(look: ConfigView) -> NetInput:
    """Frames, rows and columns of patches."""
    return NetInput(torch.from_numpy(np.array([[1, GRID, GRID]])), ("images", "3"))


def image_sizes(look: ConfigView) -> NetInput:
    """Height and width of the image."""
    return NetInput(torch.from_numpy(np.array([look.size])), ("images", "2"))


def input_values(look: ConfigView) -> NetInput:
    """A sound: samples of a second."""
    if look.family in ("audio-spectrogram-transformer",):
        frames, bins = int(look.config.max_length), int(look.config.num_mel_bins)
        return floats(1, frames, bins, axes=("batch", "frames", "mels"))
    if look.family in _CHANNELLED:
        channels = int(look.find("audio_channels", "num_channels", default=1))
        return floats(1, channels, AUDIO_SAMPLES, axes=("batch", str(channels), "samples"))
    if look.family == "speecht5" and "TextToSpeech" in type(look.net).__name__:
        return tokens(int(look.config.vocab_size), 1, TEXT_LENGTH)
    return floats(1, AUDIO_SAMPLES, axes=("batch", "samples"), scale=0.1)


def mel_bins(look: ConfigView) -> int:
    """Mel frequencies of a spectrogram."""
    keys = ("num_mel_bins", "input_feat_per_channel", "num_mels", "feature_size", "input_dim",
            "n_mels", "mel_bins", "feature_projection_input_dim", "input_feat_size")  # fmt: skip
    return int(look.find(*keys, part="audio", default=80))


def input_features(look: ConfigView) -> NetInput:
    """The mel spectrogram of a sound; of whisper's fixed length where its encoder asks for it."""
    bins = mel_bins(look)
    source = look.find("max_source_positions", part="audio")
    if look.family in _FRAMES_FIRST or source is None:
        return floats(1, MEL_FRAMES, bins, axes=("batch", "frames", "mels"))
    return floats(1, bins, 2 * int(source), axes=("batch", "mels", "frames"))


def input_features_mask(look: ConfigView) -> NetInput:
    """That all frames are heard."""
    made = input_features(look)
    frames = made.value.shape[made.axes.index("frames")]
    return ones(1, frames, axes=("batch", "frames"))


def bbox(look: ConfigView) -> NetInput:
    """Boxes of words, each with its corners in order."""
    length = text_length(look)
    if look.family in ("bros", "udop"):
        return NetInput(
            torch.from_numpy(
                np.tile(
                    np.array(
                        [0.1, 0.1, 0.5, 0.2]
                        * (2 if look.family == "bros" and look.config.dim_bbox == 8 else 1),
                        np.float32,
                    ),
                    (1, length, 1),
                )
            ),
            ("batch", "sequence", "corners"),
        )
    value = torch.from_numpy(np.tile(np.array([10, 10, 50, 20]), (1, length, 1)))
    return NetInput(value, ("batch", "sequence", "4"))


def past_values(look: ConfigView) -> NetInput:
    """A time series of the length that the net looks back."""
    length = int(look.find("context_length", default=64))
    if look.family in _LAGGED:
        length += max(look.config.lags_sequence)
        return floats(1, length, axes=("batch", "time"))
    if look.family.startswith("timesfm"):
        return floats(1, length, axes=("batch", "time"))
    channels = int(look.find("num_input_channels", default=1))
    return floats(1, length, channels, axes=("batch", "time", str(channels)))


def _times(key: str) -> Maker:
    def make(look: ConfigView) -> NetInput | None:
        if look.family not in _LAGGED:
            return None
        config = look.config
        length = int(config.prediction_length)
        if key == "past":
            length = int(config.context_length) + max(config.lags_sequence)
        width = int(config.num_time_features)
        return floats(1, length, width, axes=("batch", "time", str(width)))

    return make


def past_observed_mask(look: ConfigView) -> NetInput | None:
    """That all values of the past are known."""
    if look.family not in _LAGGED:
        return None
    made = past_values(look)
    return ones(*made.value.shape, axes=made.axes)


def future_values(look: ConfigView) -> NetInput | None:
    """What the decoder is told of the future."""
    if look.family not in _LAGGED:
        return None
    return floats(1, int(look.config.prediction_length), axes=("batch", "time"))


def _off(look: ConfigView) -> NetInput:
    return NetInput(False)


def decoder_input_values(look: ConfigView) -> NetInput | None:
    """The spectrogram so far."""
    if look.family != "speecht5":
        return None
    bins = int(look.config.num_mel_bins)
    return floats(1, DECODER_LENGTH, bins, axes=("batch", "frames", "mels"))


def qformer_input_ids(look: ConfigView) -> NetInput:
    """The question, as the part that asks the image reads it."""
    vocabulary = int(look.find("vocab_size", part="qformer", default=1000))
    return tokens(vocabulary, 1, TEXT_LENGTH)


def flattened_patches(look: ConfigView) -> NetInput:
    """Patches of an image, each with its row and column before its pixels."""
    width = 2 + _patch_width(look)
    made = floats(1, GRID * GRID, width, axes=("batch", "patches", str(width)))
    made.value[..., :2] = 1.0
    return made


MAKERS: dict[str, Maker] = {
    "input_ids": input_ids,
    "attention_mask": attention_mask,
    "decoder_input_ids": decoder_input_ids,
    "pixel_values": pixel_values,
    "image_grid_thw": grid,
    "grid_thw": grid,
    "image_sizes": image_sizes,
    "input_values": input_values,
    "input_features": input_features,
    "bbox": bbox,
    "past_values": past_values,
    "past_time_features": _times("past"),
    "future_time_features": _times("future"),
    "past_observed_mask": past_observed_mask,
    "future_values": future_values,
    "decoder_input_values": decoder_input_values,
    "qformer_input_ids": qformer_input_ids,
    "flattened_patches": flattened_patches,
    "use_cache": _off,
}
"""Arguments that are always given where forward takes them."""

_VIDEO = {"timesformer", "videomae", "vivit", "vjepa2", "xclip", "videoprism"}
_TILED = {"idefics2": 1, "idefics3": 1, "smolvlm": 1, "colmodernvbert": 1, "modernvbert": 1,
          "llava_next": 3, "llava_next_video": 3, "llava_onevision": 2,
          "granite4_vision": 3}  # fmt: skip
"""Families that take an image as several tiles: how many of an image of their size."""

_CHANNELLED = {"encodec", "dac", "mimi", "mimi_encoder", "xcodec", "xcodec2",
               "pocket_tts_audio_tokenizer", "vibevoice_acoustic_tokenizer",
               "vibevoice_acoustic_tokenizer_encoder", "pe_audio",
               "pe_audio_encoder", "pe_audio_video", "pe_audio_video_encoder"}  # fmt: skip
_FRAMES_FIRST = {"wav2vec2-bert", "seamless_m4t", "seamless_m4t_v2", "speech_to_text"}
_LAGGED = {"time_series_transformer", "informer", "autoformer"}
