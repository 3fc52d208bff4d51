"""Arguments of nets of transformers that take them otherwise than others, or alone."""

from __future__ import annotations

import re

import numpy as np
import torch

from passnet.extract.catalog.transformers.arguments import (
    AUDIO_SAMPLES,
    DECODER_LENGTH,
    FRAMES,
    GRID,
    MEL_FRAMES,
    TEXT_LENGTH,
    Maker,
    input_ids,
    mel_bins,
)
from passnet.extract.catalog.transformers.config_view import ConfigView
from passnet.extract.net import NetInput, floats, image, ones, tokens


def left_out(look: ConfigView) -> NetInput | None:
    """Nothing: the argument is not given."""
    return None


def unflattened(look: ConfigView) -> NetInput:
    """The patches of an image, one after the other."""
    side = look.patch
    axes = ("patches", str(look.channels), str(side), str(side))
    return floats(GRID * GRID, look.channels, side, side, axes=axes)


def image_position_mask(look: ConfigView) -> NetInput:
    """That the image stands at the start of the text."""
    length = input_ids_after_image(look).value.shape[1]
    places = np.arange(length)[None] < int(look.config.latent_query_num)
    return NetInput(torch.from_numpy(places), ("batch", "sequence"))


def input_ids_after_image(look: ConfigView) -> NetInput:
    """Text with room for the image before it."""
    length = int(look.config.latent_query_num) + TEXT_LENGTH
    return tokens(int(look.text("vocab_size", 1000)), 1, length)


def codebook_ids(look: ConfigView) -> NetInput:
    """Sound tokens, of all codebooks one after the other."""
    books = int(look.find("num_codebooks", part="decoder", default=4))
    vocabulary = int(look.find("vocab_size", part="decoder", default=1000))
    axes = (str(books), "sequence")
    return NetInput(tokens(vocabulary, books, DECODER_LENGTH).value, axes)


def fine_ids(look: ConfigView) -> NetInput:
    """Sound tokens, with the codebooks last."""
    books = int(look.config.n_codes_total)
    made = tokens(int(look.config.input_vocab_size), TEXT_LENGTH, books)
    return NetInput(made.value[None], ("batch", "sequence", str(books)))


def question_and_text(look: ConfigView) -> NetInput:
    """Text in which three separators stand, as between a question and what it is asked of."""
    made = input_ids(look)
    if re.search("ForQuestionAnswering|ForMultipleChoice", type(look.net).__name__):
        made.value[..., [8, 9, -1]] = int(look.config.sep_token_id)
    return made


def channel_ids(look: ConfigView) -> NetInput:
    """Sound tokens so far, in all channels."""
    channels = int(look.find("num_channels", part="decoder", default=9))
    made = tokens(int(look.find("vocab_size", part="decoder")), DECODER_LENGTH, channels)
    return NetInput(made.value[None], ("batch", "sequence", str(channels)))


def mel_spectrogram(look: ConfigView) -> NetInput:
    """A mel spectrogram that is to become a sound."""
    bins = int(look.find("mel_dim", "num_mel_bins", default=80))
    return floats(1, bins, MEL_FRAMES, axes=("batch", "mels", "frames"))


def task_inputs(look: ConfigView) -> NetInput:
    """The name of the task, as text."""
    config = look.config
    return tokens(int(config.text_encoder_vocab_size), 1, int(config.task_seq_len))


def pair(look: ConfigView) -> NetInput:
    """Two images of the same thing."""
    axes = ("batch", "2", str(look.channels), "height", "width")
    return floats(1, 2, look.channels, *look.size, axes=axes)


def rows_of_patches(look: ConfigView) -> NetInput:
    """The patches of each image, flattened."""
    width = look.channels * look.patch**2
    return floats(1, GRID * GRID, width, axes=("batch", "patches", str(width)))


def square_patches(look: ConfigView) -> NetInput:
    """The patches of each image, each as an image."""
    side = look.patch
    axes = ("batch", "patches", str(look.channels), str(side), str(side))
    return floats(1, GRID * GRID, look.channels, side, side, axes=axes)


def strip_of_patches(look: ConfigView) -> NetInput:
    """The patches of an image, side by side."""
    axes = ("batch", str(look.channels), str(look.patch), "width")
    return floats(1, look.channels, look.patch, look.patch * GRID * GRID, axes=axes)


def rows_and_columns(look: ConfigView) -> NetInput:
    """Rows and columns of patches of each image."""
    return NetInput(torch.from_numpy(np.array([[GRID, GRID]])), ("batch", "2"))


def seen_patches(look: ConfigView) -> NetInput:
    """That no patch is filled in."""
    return ones(1, GRID * GRID, axes=("batch", "patches"))


def tiles(look: ConfigView) -> NetInput:
    """One image, cut into tiles."""
    count = int(look.find("max_num_tiles", part="vision", default=4))
    axes = ("batch", "images", "tiles", str(look.channels), "height", "width")
    return floats(1, 1, count, look.channels, *look.size, axes=axes)


def tile_mask(look: ConfigView) -> NetInput:
    """That all tiles of an image are there."""
    count = int(look.find("max_num_tiles", part="vision", default=4))
    return ones(1, 1, count, axes=("batch", "images", "tiles"))


def single_image(look: ConfigView) -> NetInput:
    """A list of one image."""
    axes = ("batch", "images", str(look.channels), "height", "width")
    return floats(1, 1, look.channels, *look.size, axes=axes)


def images_before_text(look: ConfigView) -> NetInput:
    """That every word may look at the one image."""
    return ones(1, TEXT_LENGTH, 1, axes=("batch", "sequence", "images"))


def frames_alone(look: ConfigView) -> NetInput:
    """The frames of a video, as a batch."""
    frames = int(look.config.num_frames)
    return image(frames, look.channels, *look.size)


def sized_image(*size: int) -> Maker:
    """An image of this height and width."""
    return lambda look: image(1, look.channels, *size)


def sized_video(side: int) -> Maker:
    """A video of square frames of this side."""
    axes = ("batch", "frames", "3", "height", "width")
    return lambda look: floats(1, FRAMES, 3, side, side, axes=axes)


def text_line(look: ConfigView) -> NetInput:
    """The image of a line of text."""
    return image(1, look.channels, 96 if "Mobile" in type(look.net).__name__ else 48, 320)


NUM_OBJECTS = 36


def visual_feats(look: ConfigView) -> NetInput:
    """Features of the things that another net found in an image."""
    width = int(look.config.visual_feat_dim)
    return floats(1, NUM_OBJECTS, width, axes=("batch", "objects", str(width)))


def visual_pos(look: ConfigView) -> NetInput:
    """Where these things are."""
    width = int(look.config.visual_pos_dim)
    return floats(1, NUM_OBJECTS, width, axes=("batch", "objects", str(width)))


def audio_codes(look: ConfigView) -> NetInput:
    """Sound tokens so far, of all codebooks."""
    books = int(look.config.num_codebooks)
    made = tokens(int(look.config.audio_vocab_size), books, TEXT_LENGTH)
    return NetInput(made.value[None], ("batch", str(books), "sequence"))


def text_and_codes(look: ConfigView) -> NetInput:
    """The word and the sound tokens of each step."""
    books = int(look.config.num_codebooks)
    made = tokens(int(look.config.codebook_vocab_size), TEXT_LENGTH, books + 1)
    return NetInput(made.value[None], ("batch", "sequence", str(books + 1)))


def by_word(word: str, maker: Maker, other: Maker) -> Maker:
    """One maker for the classes that have this word in their name, another for the rest."""
    return lambda look: (maker if word in type(look.net).__name__ else other)(look)


def words_of(maker: Maker) -> Maker:
    """What is beside each document: that all of it is read."""

    def make(look: ConfigView) -> NetInput | None:
        made = maker(look)
        return None if made is None else ones(*made.value.shape, axes=made.axes)

    return make


def found_scores(look: ConfigView) -> NetInput:
    """How well each document fits the question."""
    return floats(1, int(look.config.n_docs), axes=("batch", "documents"))


NUM_ENTITIES = 2


MENTION_WORDS = 4


def entity_ids(look: ConfigView) -> NetInput:
    """What the text names."""
    made = tokens(int(look.config.entity_vocab_size), 1, NUM_ENTITIES)
    return NetInput(made.value, ("batch", "entities"))


def entity_position_ids(look: ConfigView) -> NetInput:
    """Where in the text each is named."""
    places = np.arange(NUM_ENTITIES * MENTION_WORDS).reshape(1, NUM_ENTITIES, MENTION_WORDS)
    return NetInput(torch.from_numpy(places), ("batch", "entities", "words"))


def entity_mask(look: ConfigView) -> NetInput:
    """That each is there."""
    return ones(1, NUM_ENTITIES, axes=("batch", "entities"))


def entity_ends(look: ConfigView) -> NetInput:
    """The word with which each begins, or ends."""
    return NetInput(torch.from_numpy(np.arange(NUM_ENTITIES)[None] * 4), ("batch", "entities"))


def all_patches(look: ConfigView) -> NetInput:
    """The patches of an image of the size that a net is made for, flattened."""
    count = (look.size[0] // look.patch) * (look.size[1] // look.patch)
    width = look.channels * look.patch**2
    return floats(1, count, width, axes=("batch", "patches", str(width)))


def frames_of_text(look: ConfigView) -> NetInput:
    """As much sound as there is text: eight frames to a word."""
    bins = mel_bins(look)
    return floats(1, bins, 8 * TEXT_LENGTH, axes=("batch", "mels", "frames"))


def codes_of_steps(look: ConfigView) -> NetInput:
    """Sound tokens so far, the codebooks last."""
    books = int(look.config.num_codebooks)
    made = tokens(int(look.config.vocab_size), TEXT_LENGTH, books)
    return NetInput(made.value[None], ("batch", "sequence", str(books)))


def samples(look: ConfigView) -> NetInput:
    """A sound of one channel."""
    return floats(1, 1, AUDIO_SAMPLES, axes=("batch", "1", "samples"), scale=0.1)


def seen_features(look: ConfigView) -> NetInput:
    """The features of an image that is asked."""
    width = int(look.config.encoder_hidden_size)
    return floats(1, GRID * GRID + 1, width, axes=("batch", "patches", str(width)))


def text_with_question(look: ConfigView) -> NetInput:
    """Text in which a word is asked for."""
    made = input_ids(look)
    made.value[..., 8] = int(look.config.question_token_id)
    return made


def frames_of(width: int) -> Maker:
    """Frames of a sound, of this many numbers each."""
    return lambda look: floats(1, MEL_FRAMES, width, axes=("batch", "frames", "mels"))


def frames_of_sound(look: ConfigView) -> NetInput:
    """The spectrogram that goes with the samples: 50 frames to a second."""
    bins = mel_bins(look)
    return floats(1, AUDIO_SAMPLES // 320, bins, axes=("batch", "frames", "mels"))


def episode(key: str) -> Maker:
    """What was seen, or done, at each time."""

    def make(look: ConfigView) -> NetInput:
        width = int(getattr(look.config, key)) if key else 1
        return floats(1, TEXT_LENGTH, width, axes=("batch", "time", str(width)))

    return make


def spectrogram_image(look: ConfigView) -> NetInput:
    """The mel spectrogram of a sound of ten seconds, as an image."""
    bins = int(look.find("num_mel_bins", part="audio", default=64))
    return floats(1, 1, 1001, bins, axes=("batch", "1", "frames", "mels"))


def optical_flow(look: ConfigView) -> NetInput:
    """Two images after each other, with the patch of 3 by 3 around each pixel."""
    return floats(1, 2, 27, *look.config.train_size,
                  axes=("batch", "2", "27", "height", "width"))  # fmt: skip


def slanet_columns(look: ConfigView) -> NetInput:
    """The image of a table, as columns of features."""
    width = int(look.config.post_conv_out_channels)
    return floats(1, GRID * GRID, width, axes=("batch", "columns", str(width)))


def number(value: int | None) -> Maker:
    """A number that is always the same, or None."""
    return lambda look: NetInput(value)


def unit_ids(look: ConfigView) -> NetInput:
    """Sound tokens that are to become a sound."""
    return tokens(int(look.config.unit_hifi_gan_vocab_size), 1, TEXT_LENGTH)
