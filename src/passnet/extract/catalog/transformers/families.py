"""Families of transformers whose arguments are made otherwise than their names say."""

from __future__ import annotations

import numpy as np
import torch

from passnet.extract.catalog.transformers.arguments import (
    DECODER_LENGTH,
    GRID,
    MEL_FRAMES,
    TEXT_LENGTH,
    Maker,
    input_ids,
    pixel_values,
)
from passnet.extract.catalog.transformers.look import Look
from passnet.extract.net import Given, floats, image, tokens


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
