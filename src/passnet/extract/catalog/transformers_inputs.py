"""Inputs of the nets of transformers: made from the arguments of forward and the configuration."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from passnet.extract.net import Given, floats, image, ones, tokens

TEXT_LENGTH = 32
DECODER_LENGTH = 16
IMAGE_SIZE = 224
"""Of nets whose configuration does not name one."""

DETECTION_SIZE = 640
GRID = 16
"""Patches along each side of an image of a net that takes patches of any number."""

AUDIO_SAMPLES = 16000
MEL_FRAMES = 128
FRAMES = 8

Maker: TypeAlias = Callable[["Look"], Given | None]
"""Makes one argument; None where it is not to be given."""


class Look:
    """What is known of a net: its configuration, with the parts of it, and its arguments."""

    def __init__(self, net: torch.nn.Module, config: Any) -> None:
        self.net, self.config = net, config
        self.params = inspect.signature(net.forward).parameters
        self.family = str(config.model_type)

    def find(self, *keys: str, part: str = "", default: Any = None) -> Any:
        """The first of these settings that the configuration has, first in parts named so."""
        parts = list(_parts(self.config))
        parts.sort(key=lambda item: part not in item[0] if part else False)
        for _, config in parts:
            for key in keys:
                value = getattr(config, key, None)
                if value is not None:
                    return value
        return default

    def text(self, key: str, default: Any = None) -> Any:
        """A setting of the part of the configuration that is about text."""
        value = getattr(self.config.get_text_config(), key, None)
        return self.find(key, part="text", default=default) if value is None else value

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        large = any(word in type(self.net).__name__ for word in _LARGE)
        found = self.find(
            "image_size", "img_size", "input_size", "pretrained_img_size", part="vision",
            default=DETECTION_SIZE if large else IMAGE_SIZE,
        )  # fmt: skip
        if isinstance(found, Mapping):
            found = [found[key] for key in ("height", "width") if key in found]
        if isinstance(found, (list, tuple)):
            found = list(found)[-2:]
            return int(found[0]), int(found[-1])
        return int(found), int(found)

    @property
    def channels(self) -> int:
        """Channels of an image."""
        keys = ("num_channels", "in_channels", "in_chans", "num_input_channels")
        return int(self.find(*keys, part="vision", default=3))

    @property
    def patch(self) -> int:
        """Side of a patch of an image."""
        found = self.find("patch_size", part="vision", default=14)
        return int(found[-1] if isinstance(found, (list, tuple)) else found)


_LARGE = ("Detection", "Detr", "YOLO", "Yolos", "DFine", "DETR", "GroundingDino")


def _parts(config: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, config
    for key, value in vars(config).items():
        if hasattr(value, "model_type") and hasattr(value, "to_dict"):
            yield from _parts(value, key)


def text_length(look: Look) -> int:
    """Of the text beside an image or alone, where the net is not made for a fixed one."""
    limit = look.text("max_position_embeddings", TEXT_LENGTH)
    return min(TEXT_LENGTH, int(limit)) if isinstance(limit, int) and limit > 0 else TEXT_LENGTH


def input_ids(look: Look) -> Given:
    """Random text; for a multiple choice, two of them."""
    vocabulary = int(look.text("vocab_size", 1000))
    made = tokens(vocabulary, 1, text_length(look))
    if "ForMultipleChoice" in type(look.net).__name__:
        return _choices(made)
    return made


def _choices(made: Given) -> Given:
    value = made.value
    both = value[:, None].expand(value.shape[0], 2, *value.shape[1:]).contiguous()
    return Given(both, ("batch", "2", *made.axes[1:]))


def attention_mask(look: Look) -> Given | None:
    """That nothing of the text is hidden; the nets of sounds do without."""
    if "input_ids" not in look.params:
        return None
    ids = input_ids(look)
    return ones(*ids.value.shape, axes=ids.axes)


def decoder_input_ids(look: Look) -> Given:
    """The text so far."""
    vocabulary = int(look.find("vocab_size", part="decoder") or look.text("vocab_size", 1000))
    return tokens(vocabulary, 1, DECODER_LENGTH)


def pixel_values(look: Look) -> Given:
    """An image, or a video where that is the net's business, or patches where it takes those."""
    if "image_grid_thw" in look.params or "grid_thw" in look.params:
        return patches(look)
    if look.family in _VIDEO or "VideoClassification" in type(look.net).__name__:
        return video(look)
    made = image(1, look.channels, *look.size)
    if look.family in _TILED:
        value = made.value[:, None].expand(-1, _TILED[look.family], -1, -1, -1).contiguous()
        return Given(value, ("batch", "tiles", *made.axes[1:]))
    return made


def video(look: Look) -> Given:
    """A video of as many frames as the configuration says."""
    frames = int(look.find("num_frames", "frames_per_clip", part="vision", default=FRAMES))
    axes = ("batch", "frames", str(look.channels), "height", "width")
    return floats(1, frames, look.channels, *look.size, axes=axes)


def patches(look: Look) -> Given:
    """The patches of an image, flattened."""
    width = _patch_width(look)
    return floats(GRID * GRID, width, axes=("patches", str(width)))


def _patch_width(look: Look) -> int:
    """Numbers in a patch: what the layer that embeds patches takes."""
    for name, module in look.net.named_modules():
        weight = getattr(module, "weight", None)
        embeds = re.search(r"patch_(embed|proj)|patchify", name) and "norm" not in name
        if embeds and isinstance(weight, torch.Tensor) and weight.dim() > 1:
            return math.prod(weight.shape[1:])
    temporal = int(look.find("temporal_patch_size", part="vision", default=1))
    return look.channels * temporal * look.patch**2


def grid(look: Look) -> Given:
    """Frames, rows and columns of patches."""
    return Given(torch.from_numpy(np.array([[1, GRID, GRID]])), ("images", "3"))


def image_sizes(look: Look) -> Given:
    """Height and width of the image."""
    return Given(torch.from_numpy(np.array([look.size])), ("images", "2"))


def input_values(look: Look) -> Given:
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


def mel_bins(look: Look) -> int:
    """Mel frequencies of a spectrogram."""
    keys = ("num_mel_bins", "input_feat_per_channel", "num_mels", "feature_size", "input_dim",
            "n_mels", "mel_bins", "feature_projection_input_dim", "input_feat_size")  # fmt: skip
    return int(look.find(*keys, part="audio", default=80))


def input_features(look: Look) -> Given:
    """The mel spectrogram of a sound; of whisper's fixed length where its encoder asks for it."""
    bins = mel_bins(look)
    source = look.find("max_source_positions", part="audio")
    if look.family in _FRAMES_FIRST or source is None:
        return floats(1, MEL_FRAMES, bins, axes=("batch", "frames", "mels"))
    return floats(1, bins, 2 * int(source), axes=("batch", "mels", "frames"))


def input_features_mask(look: Look) -> Given:
    """That all frames are heard."""
    made = input_features(look)
    frames = made.value.shape[made.axes.index("frames")]
    return ones(1, frames, axes=("batch", "frames"))


def bbox(look: Look) -> Given:
    """Boxes of words, each with its corners in order."""
    length = text_length(look)
    if look.family in ("bros", "udop"):
        return Given(
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
    return Given(value, ("batch", "sequence", "4"))


def past_values(look: Look) -> Given:
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
    def make(look: Look) -> Given | None:
        if look.family not in _LAGGED:
            return None
        config = look.config
        length = int(config.prediction_length)
        if key == "past":
            length = int(config.context_length) + max(config.lags_sequence)
        width = int(config.num_time_features)
        return floats(1, length, width, axes=("batch", "time", str(width)))

    return make


def past_observed_mask(look: Look) -> Given | None:
    """That all values of the past are known."""
    if look.family not in _LAGGED:
        return None
    made = past_values(look)
    return ones(*made.value.shape, axes=made.axes)


def future_values(look: Look) -> Given | None:
    """What the decoder is told of the future."""
    if look.family not in _LAGGED:
        return None
    return floats(1, int(look.config.prediction_length), axes=("batch", "time"))


def _off(look: Look) -> Given:
    return Given(False)


def decoder_input_values(look: Look) -> Given | None:
    """The spectrogram so far."""
    if look.family != "speecht5":
        return None
    bins = int(look.config.num_mel_bins)
    return floats(1, DECODER_LENGTH, bins, axes=("batch", "frames", "mels"))


def qformer_input_ids(look: Look) -> Given:
    """The question, as the part that asks the image reads it."""
    vocabulary = int(look.find("vocab_size", part="qformer", default=1000))
    return tokens(vocabulary, 1, TEXT_LENGTH)


def flattened_patches(look: Look) -> Given:
    """Patches of an image, each with its row and column before its pixels."""
    width = 2 + _patch_width(look)
    made = floats(1, GRID * GRID, width, axes=("batch", "patches", str(width)))
    made.value[..., :2] = 1.0
    return made


def hidden_states(look: Look) -> Given:
    """What a part of a larger net takes: patches with a grid, else features of its width."""
    if "grid_thw" in look.params:
        return patches(look)
    width = int(look.find("hidden_size", "d_model", default=256))
    return floats(1, TEXT_LENGTH, width, axes=("batch", "sequence", str(width)))


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

REQUIRED: dict[str, Maker] = {
    "pixel_values_videos": video,
    "hidden_states": hidden_states,
    "input_features_mask": input_features_mask,
    "inputs": lambda look: input_ids(look),
    "spectrogram": lambda look: floats(
        1, MEL_FRAMES, int(look.find("model_in_dim", default=80)), axes=("batch", "frames", "mels")
    ),
}
"""Arguments that are given only where forward cannot do without."""

_VIDEO = {"timesformer", "videomae", "vivit", "vjepa2", "xclip", "videoprism"}
_TILED = {"idefics2": 1, "idefics3": 1, "smolvlm": 1, "colmodernvbert": 1, "modernvbert": 1,
          "llava_next": 3, "llava_next_video": 3, "llava_onevision": 2,
          "granite4_vision": 3}  # fmt: skip
"""Families that take an image as several tiles: how many of an image of their size."""

_CHANNELLED = {"encodec", "dac", "mimi", "xcodec", "xcodec2"}
_FRAMES_FIRST = {"wav2vec2-bert", "seamless_m4t", "seamless_m4t_v2", "speech_to_text"}
_LAGGED = {"time_series_transformer", "informer", "autoformer"}


def inputs(net: torch.nn.Module, config: Any) -> dict[str, Given]:
    """What to call a net with, by name.

    Raises:
        ValueError: forward takes something that is not known here how to make.
    """
    look = Look(net, config)
    made: dict[str, Given] = {}
    for name, param in look.params.items():
        own = FAMILIES.get(look.family, {})
        required = param.default is param.empty and param.kind is param.POSITIONAL_OR_KEYWORD
        maker = own.get(name, MAKERS.get(name) or (REQUIRED.get(name) if required else None))
        if maker is None and required:
            raise ValueError(f"no rule for the argument {name!r} of {type(net).__name__}")
        given = maker(look) if maker is not None else None
        if given is not None:
            made[name] = given
    place_images(look, made)
    return made


def _none(look: Look) -> Given | None:
    return None


def unflattened(look: Look) -> Given:
    """The patches of an image, one after the other."""
    side = look.patch
    axes = ("patches", str(look.channels), str(side), str(side))
    return floats(GRID * GRID, look.channels, side, side, axes=axes)


def image_position_mask(look: Look) -> Given:
    """That the image stands at the start of the text."""
    length = input_ids_after_image(look).value.shape[1]
    places = np.arange(length)[None] < int(look.config.latent_query_num)
    return Given(torch.from_numpy(places), ("batch", "sequence"))


def input_ids_after_image(look: Look) -> Given:
    """Text with room for the image before it."""
    length = int(look.config.latent_query_num) + TEXT_LENGTH
    return tokens(int(look.text("vocab_size", 1000)), 1, length)


def codebook_ids(look: Look) -> Given:
    """Sound tokens, of all codebooks one after the other."""
    books = int(look.find("num_codebooks", part="decoder", default=4))
    vocabulary = int(look.find("vocab_size", part="decoder", default=1000))
    axes = (str(books), "sequence")
    return Given(tokens(vocabulary, books, DECODER_LENGTH).value, axes)


def fine_ids(look: Look) -> Given:
    """Sound tokens, with the codebooks last."""
    books = int(look.config.n_codes_total)
    made = tokens(int(look.config.input_vocab_size), TEXT_LENGTH, books)
    return Given(made.value[None], ("batch", "sequence", str(books)))


def question_and_text(look: Look) -> Given:
    """Text in which three separators stand, as between a question and what it is asked of."""
    made = input_ids(look)
    if "ForQuestionAnswering" in type(look.net).__name__:
        made.value[..., [8, 9, -1]] = int(look.config.sep_token_id)
    return made


def channel_ids(look: Look) -> Given:
    """Sound tokens so far, in all channels."""
    channels = int(look.find("num_channels", part="decoder", default=9))
    made = tokens(int(look.find("vocab_size", part="decoder")), DECODER_LENGTH, channels)
    return Given(made.value[None], ("batch", "sequence", str(channels)))


def mel_spectrogram(look: Look) -> Given:
    """A mel spectrogram that is to become a sound."""
    bins = int(look.find("mel_dim", "num_mel_bins", default=80))
    return floats(1, bins, MEL_FRAMES, axes=("batch", "mels", "frames"))


def task_inputs(look: Look) -> Given:
    """The name of the task, as text."""
    config = look.config
    return tokens(int(config.text_encoder_vocab_size), 1, int(config.task_seq_len))


def _number(value: int) -> Maker:
    return lambda look: Given(value)


_KOSMOS: dict[str, Maker] = {
    "input_ids": input_ids_after_image,
    "attention_mask": _none,
    "image_embeds_position_mask": image_position_mask,
}

FAMILIES: dict[str, dict[str, Maker]] = {
    "vits": {"attention_mask": _none},
    "longformer": {"input_ids": question_and_text},
    "dia": {"decoder_input_ids": channel_ids},
    "qwen2_5_omni_bigvgan": {"mel_spectrogram": mel_spectrogram},
    "udop": {"pixel_values": _none},
    "kosmos-2": _KOSMOS,
    "kosmos-2.5": _KOSMOS,
    "oneformer": {"task_inputs": task_inputs},
    "musicgen_decoder": {"input_ids": codebook_ids, "attention_mask": _none},
    "musicgen_melody_decoder": {"input_ids": codebook_ids, "attention_mask": _none},
    "musicgen": {"decoder_input_ids": codebook_ids, "input_values": _none},
    "musicgen_melody": {"decoder_input_ids": codebook_ids, "input_features": _none},
    "fine_acoustics": {"input_ids": fine_ids, "codebook_idx": _number(2), "attention_mask": _none},
    "kimi_k25": {"pixel_values": unflattened},
    "kimi_k25_vision": {"pixel_values": unflattened},
    "florence_vision": {"hidden_states": lambda look: image(1, look.channels, *look.size)},
    "slanet": {"hidden_states": pixel_values},
}
"""By the family of the configuration: what differs from the rules above."""

PLACES = (
    (("pixel_values",), ("image_token_id", "image_token_index", "img_token_id"),
     "get_image_features"),
    (("input_features", "input_values"), ("audio_token_id", "audio_token_index"),
     "get_audio_features"),
)  # fmt: skip
"""Arguments that are not text, the settings that name their tokens, who makes their features."""


def place_images(look: Look, made: dict[str, Given]) -> None:
    """Put as many placeholders before the text as the image, or sound, has features.

    The net is asked how many these are, by the method that it makes them with.
    """
    if "input_ids" not in made:
        return
    for names, keys, method in PLACES:
        given = [name for name in names if name in made]
        token = look.find(*keys)
        ask = getattr(getattr(look.net, "model", None), method, getattr(look.net, method, None))
        if not given or token is None or ask is None:
            continue
        takes = inspect.signature(ask).parameters
        arguments = {
            name: made[name].value for name in made if name in takes and name != "input_ids"
        }
        with torch.no_grad():
            count = _rows(ask(**arguments))
        ids = made["input_ids"].value
        marks = torch.from_numpy(np.full((ids.shape[0], count), int(token)))
        ids = torch.from_numpy(np.concatenate([marks.numpy(), ids.numpy()], 1))
        made["input_ids"] = Given(ids, ("batch", "sequence"))
    ids = made["input_ids"].value
    for name in ("attention_mask", "token_type_ids", "mm_token_type_ids"):
        if name in made or (name == "mm_token_type_ids" and name in look.params):
            made[name] = _mask(look, ids, name)


def _mask(look: Look, ids: torch.Tensor, name: str) -> Given:
    values = np.ones(ids.shape, np.int64)
    if name == "mm_token_type_ids":
        token = look.find(*PLACES[0][1], default=-1)
        values = (ids.numpy() == int(token)).astype(np.int64)
    return Given(torch.from_numpy(values), ("batch", "sequence"))


def _rows(features: Any) -> int:
    """Number of feature vectors in what a method of features returns."""
    if hasattr(features, "pooler_output"):
        features = features.pooler_output
    if isinstance(features, (list, tuple)):
        return sum(_rows(item) for item in features)
    count = 1
    for size in features.shape[:-1]:
        count *= int(size)
    return count
