"""Inputs of transformers' nets, by the names of their arguments."""

import math
import re

import numpy as np
import torch

from passnet.data.capture.catalog.transformers import input_factories as make
from passnet.data.capture.catalog.transformers.input_factories import ConfigView
from passnet.data.capture.net import NetInput, floats, image, ones, tokens

TEXT_LENGTH = 32
DECODER_LENGTH = 16
GRID = 16
"""Patches along each side of an image, for nets that take any number of patches."""

AUDIO_SAMPLES = 16000
MEL_FRAMES = 128
FRAMES = 8


def text_length(view: ConfigView) -> int:
    """Return the length of a text, for nets without a fixed one."""
    limit = view.text("max_position_embeddings", TEXT_LENGTH)
    return min(TEXT_LENGTH, int(limit)) if isinstance(limit, int) and limit > 0 else TEXT_LENGTH


def vocabulary(view: ConfigView) -> int:
    """Return the number of tokens of the text."""
    return int(view.text("vocab_size", 1000))


def input_ids(view: ConfigView) -> NetInput:
    """Make a random text, two for a multiple choice; a text to classify ends in its last token."""
    text = tokens(vocabulary(view), 1, text_length(view))
    if classifies_text(view):
        text.value[:, -1] = int(view.text("eos_token_id", 2))
    if "ForMultipleChoice" in view.class_name:
        choices = text.value[:, None].expand(-1, 2, -1).contiguous()
        return NetInput(choices, ("batch", "2", "sequence"))
    return text


def attention_mask(view: ConfigView) -> NetInput | None:
    """Make a mask that hides no text; nets of sounds get none."""
    return make.filled_like(input_ids)(view) if "input_ids" in view.params else None


def classifies_text(view: ConfigView) -> bool:
    """Return whether an encoder-decoder net classifies text."""
    return "decoder_input_ids" in view.params and "ForSequenceClass" in view.class_name


def decoder_input_ids(view: ConfigView) -> NetInput | None:
    """Make the text so far; text to classify goes to both parts."""
    if classifies_text(view):
        return None
    num_tokens = int(view.find("vocab_size", part="decoder") or vocabulary(view))
    return tokens(num_tokens, 1, DECODER_LENGTH)


def pixel_values(view: ConfigView) -> NetInput | None:
    """Make an image, a video for nets of videos, or patches for nets that take a grid."""
    if "image_grid_thw" in view.params or "grid_thw" in view.params:
        return patches(view)
    if "VideoClassification" in view.class_name:
        return video(view)
    return image(1, view.channels, *view.size)


_NUM_FRAMES = make.first_setting("num_frames", "frames_per_clip", part="vision", default=FRAMES)
_FRAME = (make.CHANNELS, make.IMAGE_SIZE)
video = make.normal("batch frames *channels height width", 1, _NUM_FRAMES, *_FRAME)
"""A video with the configured number of frames."""


def patch_width(view: ConfigView) -> int:
    """Return the numbers in a patch: the input width of the layer that embeds patches."""
    for name, module in view.net.named_modules():
        weight = getattr(module, "weight", None)
        embeds = re.search(r"patch_(embed|proj)|patchify", name) and "norm" not in name
        if embeds and isinstance(weight, torch.Tensor) and weight.dim() > 1:
            return math.prod(weight.shape[1:])
    temporal = int(view.find("temporal_patch_size", part="vision", default=1))
    return view.channels * temporal * view.patch**2


patches = make.normal("patches *width", GRID * GRID, patch_width)
"""The patches of an image, flattened."""

grid = make.constant([[1, GRID, GRID]], "images 3")
"""Frames, rows and columns of patches."""


def flattened_patches(view: ConfigView) -> NetInput:
    """Make patches of an image, each with its row and column before its pixels."""
    width = 2 + patch_width(view)
    flat = floats(1, GRID * GRID, width, axes=("batch", "patches", str(width)))
    flat.value[..., :2] = 1.0
    return flat


def image_sizes(view: ConfigView) -> NetInput:
    """Make height and width of the image."""
    return NetInput(torch.from_numpy(np.array([view.size])), ("images", "2"))


def num_patches(view: ConfigView) -> int:
    """Return the number of patches of an image of the net's own size."""
    height, width = view.size
    return (height // view.patch) * (width // view.patch)


def bool_masked_pos(view: ConfigView) -> NetInput:
    """Make a mask that hides every second patch of a video."""
    frames = int(view.find("num_frames", default=1)) // int(view.find("tubelet_size", default=1))
    count = max(1, frames) * num_patches(view)
    return NetInput(torch.from_numpy(np.arange(count)[None] % 2 == 1), ("batch", "patches"))


sound = make.normal("batch samples", 1, AUDIO_SAMPLES, scale=0.1)
"""One second of samples."""


def mel_bins(view: ConfigView) -> int:
    """Return the number of mel frequencies of a spectrogram."""
    keys = ("num_mel_bins", "input_feat_per_channel", "num_mels", "feature_size", "input_dim",
            "n_mels", "mel_bins", "feature_projection_input_dim", "input_feat_size")  # fmt: skip
    return int(view.find(*keys, part="audio", default=80))


def spectrogram(bins: make.AxisSize, num_frames: int = MEL_FRAMES) -> make.InputMaker:
    """Return a maker of mel spectrograms, frames before frequencies."""
    return make.normal("batch frames mels", 1, num_frames, bins)


def input_features(view: ConfigView) -> NetInput:
    """Make the mel spectrogram of a sound, of whisper's fixed length where required."""
    bins = mel_bins(view)
    source = view.find("max_source_positions", part="audio")
    frames_first = ("wav2vec2-bert", "seamless_m4t", "seamless_m4t_v2", "speech_to_text")
    if view.family in frames_first or source is None:
        return floats(1, MEL_FRAMES, bins, axes=("batch", "frames", "mels"))
    return floats(1, bins, 2 * int(source), axes=("batch", "mels", "frames"))


def input_features_mask(view: ConfigView) -> NetInput:
    """Make a mask that hides no frame."""
    features = input_features(view)
    return ones(1, features.value.shape[features.axes.index("frames")], axes=("batch", "frames"))


def bbox(view: ConfigView) -> NetInput:
    """Make boxes of words, each with its corners in order."""
    boxes = np.tile(np.array([10, 10, 50, 20]), (1, text_length(view), 1))
    return NetInput(torch.from_numpy(boxes), ("batch", "sequence", "4"))


def past_values(view: ConfigView) -> NetInput:
    """Make a time series of the net's context length."""
    length = int(view.find("context_length", default=64))
    if view.family.startswith("timesfm"):
        return floats(1, length, axes=("batch", "time"))
    channels = int(view.find("num_input_channels", default=1))
    return floats(1, length, channels, axes=("batch", "time", str(channels)))


_QUESTION_TOKENS = make.first_setting("vocab_size", part="qformer", default=1000)
qformer_input_ids = make.token_ids("batch sequence", _QUESTION_TOKENS, 1, TEXT_LENGTH)
"""The question, as the part that queries the image reads it."""


def hidden_states(view: ConfigView) -> NetInput | None:
    """Make the input of a part of a larger net: patches for a grid, else features."""
    if "grid_thw" in view.params:
        return patches(view)
    if view.class_name.endswith("SVTR"):
        convolutions = (part for part in view.net.modules() if isinstance(part, torch.nn.Conv2d))
        # 40 columns of the features of a line of text that is to be read
        return image(1, next(convolutions).in_channels, 1, 40)
    return embeddings(view)


def _width(view: ConfigView) -> int:
    is_speech = view.family.startswith("granite_speech")
    keys = ("input_dim",) if is_speech else ("hidden_size", "d_model")
    return int(view.find(*keys, default=256))


embeddings = make.normal("batch sequence *width", 1, TEXT_LENGTH, _width)
"""Features of the width of a net."""

_HIDDEN_SIZE = make.setting("hidden_size")
latents = make.normal("batch *width frames", 1, _HIDDEN_SIZE, TEXT_LENGTH)
"""A sound as its encoder outputs it."""

_NUM_DOCUMENTS = make.setting("n_docs")
retrieved_ids = make.token_ids("batch sequence", vocabulary, _NUM_DOCUMENTS, 2 * TEXT_LENGTH)
"""The retrieved documents, each before the question."""

MAKERS: dict[str, make.InputMaker] = {
    "input_ids": input_ids, "attention_mask": attention_mask,
    "decoder_input_ids": decoder_input_ids, "pixel_values": pixel_values, "image_grid_thw": grid,
    "grid_thw": grid, "image_sizes": image_sizes, "input_values": sound,
    "input_features": input_features, "bbox": bbox, "past_values": past_values,
    "qformer_input_ids": qformer_input_ids, "flattened_patches": flattened_patches,
    "use_cache": make.constant(False),
}  # fmt: skip
"""Arguments that are always passed where forward takes them."""

REQUIRED: dict[str, make.InputMaker] = {
    "pixel_values_videos": video,
    "hidden_states": hidden_states,
    "inputs_embeds": embeddings,
    # what asks an image
    "query_embeds": make.normal("batch queries *width", 1, TEXT_LENGTH, _HIDDEN_SIZE),
    "input_features_mask": input_features_mask,
    "inputs": input_ids,
    # a mel spectrogram that is to become a sound
    "spectrogram": spectrogram(make.first_setting("model_in_dim", default=80)),
    "bool_masked_pos": bool_masked_pos,
    # that nothing of a time series is filled in
    "past_values_padding": make.filled_like(past_values, 0),
    "latents": latents,
    "audio_mel": spectrogram(make.setting("input_feat_size")),
    # that no frame is filled in
    "audio_mel_mask": make.constant(np.zeros((1, MEL_FRAMES), np.bool_), "batch frames"),
    # how many patches along each side become one
    "merge_sizes": make.constant([1], "images"),
    **dict.fromkeys(("freq", "spkr_id", "lang_id"), make.constant([[0]], "batch 1")),
    # sound tokens, of all codebooks
    "codes": make.token_ids("batch *books sequence", make.setting("codebook_size"), 1,
                            make.setting("num_quantizers"), TEXT_LENGTH),
}  # fmt: skip
"""Arguments that are passed only where forward requires them."""
