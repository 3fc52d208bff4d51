"""Families of transformers whose arguments are made otherwise than their names say."""

from __future__ import annotations

import numpy as np
import torch

from passnet.extract.catalog.transformers import input_factories as make
from passnet.extract.catalog.transformers.arguments import (
    AUDIO_SAMPLES,
    DECODER_LENGTH,
    FRAMES,
    GRID,
    MEL_FRAMES,
    TEXT_LENGTH,
    attention_mask,
    embeddings,
    hidden_states,
    input_features,
    input_ids,
    latents,
    mel_bins,
    pixel_values,
    qformer_input_ids,
    retrieved_ids,
    sound,
    spectrogram,
    text_length,
    video,
    vocabulary,
)
from passnet.extract.catalog.transformers.config_view import ConfigView
from passnet.extract.net import NetInput, image, integers

NUM_PATCHES = GRID * GRID
NUM_OBJECTS = 36
NUM_ENTITIES = 2
MENTION_WORDS = 4
_PICTURE = "batch *channels height width"
_IMAGE = (make.CHANNELS, make.IMAGE_SIZE)
"""Sizes of the axes of an image, after the first."""

_BOOKS = make.setting("num_codebooks")
_TILES = make.first_setting("max_num_tiles", part="vision", default=4)


def sized_image(height: make.AxisSize, width: make.AxisSize) -> make.InputMaker:
    """An image of this height and width."""
    return make.normal(_PICTURE, 1, make.CHANNELS, height, width)


def sized_video(side: int) -> make.InputMaker:
    """A video of square frames of this side."""
    return make.normal("batch frames 3 height width", 1, FRAMES, 3, side, side)


def tiled(num_tiles: int) -> make.InputMaker:
    """An image as that many tiles, all alike."""

    def maker(view: ConfigView) -> NetInput:
        picture = image(1, view.channels, *view.size)
        tiles = picture.value[:, None].expand(-1, num_tiles, -1, -1, -1).contiguous()
        return NetInput(tiles, ("batch", "tiles", *picture.axes[1:]))

    return maker


def marked_ids(key: str, positions: list[int]) -> make.InputMaker:
    """Text in which the token that this setting names stands at these positions."""

    def maker(view: ConfigView) -> NetInput:
        text = input_ids(view)
        text.value[..., positions] = int(getattr(view.config, key))
        return text

    return maker


def corner_boxes(view: ConfigView) -> NetInput:
    """Boxes of words, each with its corners in order, as shares of the page."""
    corners = [0.1, 0.1, 0.5, 0.2] * (2 if getattr(view.config, "dim_bbox", 4) == 8 else 1)
    boxes = np.tile(np.array(corners, np.float32), (1, text_length(view), 1))
    return NetInput(torch.from_numpy(boxes), ("batch", "sequence", "corners"))


def latent_and_text_length(view: ConfigView) -> int:
    """Of the text, with room for the image before it."""
    return int(view.config.latent_query_num) + TEXT_LENGTH


def image_position_mask(view: ConfigView) -> NetInput:
    """That the image stands at the start of the text."""
    positions = np.arange(latent_and_text_length(view))[None]
    is_image = positions < int(view.config.latent_query_num)
    return NetInput(torch.from_numpy(is_image), ("batch", "sequence"))


def patch_pixels(view: ConfigView) -> int:
    """Numbers in a patch of an image."""
    return view.channels * view.patch**2


def past_length(view: ConfigView) -> int:
    """Of the past of a time series, with the lags that reach behind it."""
    return int(view.config.context_length) + max(view.config.lags_sequence)


def num_patches(view: ConfigView) -> int:
    """Patches of an image of the size that a net is made for."""
    height, width = view.size
    return (height // view.patch) * (width // view.patch)


def _episode(width: make.AxisSize) -> make.InputMaker:
    """What was seen, or done, at each time."""
    return make.normal("batch time *width", 1, TEXT_LENGTH, width)


def _step_ids(vocabulary_key: str, num_books: make.AxisSize) -> make.InputMaker:
    """Sound tokens of each step, the codebooks last."""
    return make.token_ids(
        "batch sequence *books", make.setting(vocabulary_key), 1, TEXT_LENGTH, num_books
    )


_ROWS_AND_COLUMNS = make.constant([[GRID, GRID]], "batch 2")
_PAIR = make.normal("batch 2 *channels height width", 1, 2, *_IMAGE)
_FIRST_WORDS = make.constant([[word * MENTION_WORDS for word in range(NUM_ENTITIES)]],
                             "batch entities")  # fmt: skip
_CODEBOOK_IDS = make.token_ids(
    "*books sequence", make.first_setting("vocab_size", part="decoder", default=1000),
    make.first_setting("num_codebooks", part="decoder", default=4), DECODER_LENGTH,
)  # fmt: skip
"""Sound tokens, of all codebooks one after the other."""

_AUDIO_CODES = make.token_ids(
    "batch *books sequence", make.setting("audio_vocab_size"), 1, _BOOKS, TEXT_LENGTH
)
"""Sound tokens so far, of all codebooks."""

_TEXT_ONLY: dict[str, make.InputMaker] = dict.fromkeys(
    ("pixel_values", "image_grid_thw"), make.omit
)
_SIGLIP2: dict[str, make.InputMaker] = {
    "pixel_values": make.normal("batch patches *width", 1, NUM_PATCHES, patch_pixels),
    "pixel_attention_mask": make.all_ones("batch patches", 1, NUM_PATCHES),
    "spatial_shapes": _ROWS_AND_COLUMNS,
}
_MLLAMA: dict[str, make.InputMaker] = {  # one image, cut into tiles, all of which are there
    "pixel_values": make.normal("batch images tiles *channels height width", 1, 1, _TILES, *_IMAGE),
    "aspect_ratio_ids": make.all_ones("batch images", 1, 1),
    "aspect_ratio_mask": make.all_ones("batch images tiles", 1, 1, _TILES),
}
_STRIP: dict[str, make.InputMaker] = {  # the patches of an image, side by side
    "pixel_values": make.normal("batch *channels *side width", 1, make.CHANNELS, make.PATCH_SIDE,
                                lambda view: view.patch * NUM_PATCHES),
    "target_sizes": _ROWS_AND_COLUMNS,
}  # fmt: skip
_UNFLATTENED: dict[str, make.InputMaker] = {
    "pixel_values": make.normal("patches *channels *side *side", NUM_PATCHES, make.CHANNELS,
                                make.PATCH_SIDE, make.PATCH_SIDE),
}  # fmt: skip
_LINE: dict[str, make.InputMaker] = {  # the image of a line of text
    "pixel_values": make.by_class(
        "ForTextRecognition",
        sized_image(lambda view: 96 if "Mobile" in view.class_name else 48, 320),
        pixel_values,
    ),
}
_PE_VIDEO: dict[str, make.InputMaker] = {"pixel_values_videos": sized_video(336)}
_CHANNELLED: dict[str, make.InputMaker] = {
    "input_values": make.normal(
        "batch *channels samples", 1,
        make.first_setting("audio_channels", "num_channels", default=1), AUDIO_SAMPLES),
}  # fmt: skip
_SEAMLESS: dict[str, make.InputMaker] = {
    "input_ids": make.by_class("TextToUnit", make.omit, input_ids),
    "attention_mask": make.by_class("TextToUnit", make.omit, attention_mask),
    "inputs_embeds": make.by_class("TextToUnit", embeddings, make.omit),
    "input_features": lambda view: None if "input_ids" in view.params else input_features(view),
}
_KOSMOS: dict[str, make.InputMaker] = {
    "input_ids": make.token_ids("batch sequence", vocabulary, 1, latent_and_text_length),
    "attention_mask": make.omit,
    "image_embeds_position_mask": image_position_mask,
}
_HORIZON, _TIME_WIDTH = make.setting("prediction_length"), make.setting("num_time_features")
_LAGGED: dict[str, make.InputMaker] = {
    "past_values": make.normal("batch time", 1, past_length),
    "past_time_features": make.normal("batch time *width", 1, past_length, _TIME_WIDTH),
    "past_observed_mask": make.all_ones("batch time", 1, past_length),
    "future_values": make.normal("batch time", 1, _HORIZON),
    "future_time_features": make.normal("batch time *width", 1, _HORIZON, _TIME_WIDTH),
}

FAMILIES: dict[str, dict[str, make.InputMaker]] = {
    # text
    "vits": {"attention_mask": make.omit},
    # three separators stand between a question and what it is asked of
    "longformer": {"input_ids": make.by_class("ForQuestionAnswering|ForMultipleChoice",
                   marked_ids("sep_token_id", [8, 9, -1]), input_ids)},
    # a word is asked for
    "splinter": {"input_ids": make.by_class("ForPreTraining",
                 marked_ids("question_token_id", [8]), input_ids)},
    "rag": {
        "context_input_ids": retrieved_ids,
        "context_attention_mask": make.ones_like(retrieved_ids),
        # how well each document fits the question
        "doc_scores": make.normal("batch documents", 1, make.setting("n_docs")),
    },
    "luke": {  # what the text names, and where in it
        "entity_ids": make.by_class("Entity", make.token_ids(
            "batch entities", make.setting("entity_vocab_size"), 1, NUM_ENTITIES), make.omit),
        "entity_position_ids": make.by_class("Entity", make.constant(
            np.arange(NUM_ENTITIES * MENTION_WORDS).reshape(1, NUM_ENTITIES, MENTION_WORDS),
            "batch entities words"), make.omit),
        "entity_attention_mask": make.by_class(
            "Entity", make.all_ones("batch entities", 1, NUM_ENTITIES), make.omit),
        "entity_start_positions": _FIRST_WORDS,
        "entity_end_positions": _FIRST_WORDS,
    },
    "bros": {"bbox": corner_boxes},
    "udop": {"pixel_values": make.omit, "bbox": corner_boxes},
    **dict.fromkeys(("minimax_m3_vl", "glm_image", "chameleon", "emu3", "dots3_note", "t5gemma2",
                     "colpali", "colqwen2", "colmodernvbert"), _TEXT_ONLY),
    "flava": {"return_loss": make.constant(False)},
    # images
    **dict.fromkeys(("kosmos-2", "kosmos-2.5"), _KOSMOS),
    **dict.fromkeys(("siglip2", "siglip2_vision_model"), _SIGLIP2),
    **dict.fromkeys(("mllama", "mllama_vision_model"), _MLLAMA),
    **dict.fromkeys(("kimi_k25", "kimi_k25_vision"), _UNFLATTENED),
    **dict.fromkeys(("minicpm_ocr_vision", "minicpmv4_7_vision"), _STRIP),
    **dict.fromkeys(("efficientloftr", "lightglue", "superglue"), {"pixel_values": _PAIR}),
    **dict.fromkeys(("pp_ocrv5_mobile_rec", "pp_ocrv5_server_rec", "pp_ocrv6_small_rec",
                     "pp_ocrv6_tiny_rec"), _LINE),
    **dict.fromkeys(("idefics2", "idefics3", "smolvlm", "modernvbert"), {"pixel_values": tiled(1)}),
    **dict.fromkeys(("llava_next", "llava_next_video", "granite4_vision"),
                    {"pixel_values": tiled(3)}),
    "llava_onevision": {"pixel_values": tiled(2)},
    "oneformer": {"task_inputs": make.token_ids("batch sequence",  # the name of the task, as text
                  make.setting("text_encoder_vocab_size"), 1, make.setting("task_seq_len"))},
    "florence_vision": {"hidden_states": make.normal(_PICTURE, 1, *_IMAGE)},
    # the image of a table, as columns of features
    "slanet": {"hidden_states": make.by_class("SLAHead", make.normal(
        "batch columns *width", 1, NUM_PATCHES, make.setting("post_conv_out_channels")),
        pixel_values)},
    "slanext": {"hidden_states": make.by_class("Backbone", pixel_values, hidden_states)},
    "pp_ocrv5_mobile_det": {"hidden_states": pixel_values},
    "paddleocr_vl_vision": {"pixel_values": make.normal("batch patches *channels *side *side", 1,
                            NUM_PATCHES, make.CHANNELS, make.PATCH_SIDE, make.PATCH_SIDE)},
    "molmo2_vision": {"pixel_values": make.normal("batch patches *width", 1, num_patches,
                                                  patch_pixels)},
    "depth_pro": {"pixel_values": sized_image(1536, 1536)},
    "janus_vqgan": {"pixel_values": sized_image(512, 512)},
    "seggpt": dict.fromkeys(("pixel_values", "prompt_pixel_values", "prompt_masks"),
                            sized_image(448, 448)),
    "vilt": {"pixel_values": make.by_class("ImagesAndText", _PAIR, pixel_values)},
    "idefics": {  # one image, at which every word may look
        "pixel_values": make.normal("batch images *channels height width", 1, 1, *_IMAGE),
        "image_attention_mask": make.all_ones("batch sequence images", 1, TEXT_LENGTH, 1),
    },
    "lxmert": {  # the objects that another net found in an image: features of each, and where it is
        "visual_feats": make.normal("batch objects *width", 1, NUM_OBJECTS,
                                    make.setting("visual_feat_dim")),
        "visual_pos": make.normal("batch objects *width", 1, NUM_OBJECTS,
                                  make.setting("visual_pos_dim")),
    },
    # the features of an image that is asked
    "blip_2_qformer": {"encoder_hidden_states": make.normal(
        "batch patches *width", 1, NUM_PATCHES + 1, make.setting("encoder_hidden_size"))},
    "Blip2TextModelWithProjection": {"input_ids": qformer_input_ids},
    "Blip2ForImageTextRetrieval": {"input_ids": qformer_input_ids},
    # two images after each other, with the patch of 3 by 3 around each pixel
    "perceiver": {"inputs": make.by_class("PerceiverModel", embeddings, make.by_class(
        "OpticalFlow",
        make.normal("batch 2 27 height width", 1, 2, 27, make.setting("train_size")), make.omit))},
    # videos
    **dict.fromkeys(("timesformer", "videomae", "vivit", "vjepa2", "xclip", "videoprism",
                     "instructblipvideo"), {"pixel_values": video}),
    **dict.fromkeys(("videoprism_vision_model", "videomt"), {"pixel_values_videos": video}),
    "xclip_vision_model": {"pixel_values": make.normal(_PICTURE, make.setting("num_frames"),
                                                       *_IMAGE)},  # frames as a batch
    "tvp": {"pixel_values": sized_video(448)},
    **dict.fromkeys(("pe_video", "pe_video_encoder"), _PE_VIDEO),
    **dict.fromkeys(("pe_audio_video", "pe_audio_video_encoder"), _PE_VIDEO | _CHANNELLED),
    # sounds
    **dict.fromkeys(("encodec", "dac", "mimi", "mimi_encoder", "xcodec", "pe_audio",
                     "pocket_tts_audio_tokenizer", "vibevoice_acoustic_tokenizer",
                     "pe_audio_encoder"), _CHANNELLED),
    **dict.fromkeys(("seamless_m4t", "seamless_m4t_v2"), _SEAMLESS),
    **dict.fromkeys(("musicgen_decoder", "musicgen_melody_decoder"),
                    {"input_ids": _CODEBOOK_IDS, "attention_mask": make.omit}),
    "musicgen": {"decoder_input_ids": _CODEBOOK_IDS, "input_values": make.omit},
    "musicgen_melody": {"decoder_input_ids": _CODEBOOK_IDS, "input_features": make.omit},
    "dia": {"decoder_input_ids": make.token_ids(
        "batch sequence *channels", make.first_setting("vocab_size", part="decoder"), 1,
        DECODER_LENGTH, make.first_setting("num_channels", part="decoder", default=9))},
    # a mel spectrogram that is to become a sound
    "qwen2_5_omni_bigvgan": {"mel_spectrogram": make.normal("batch mels frames", 1,
        make.first_setting("mel_dim", "num_mel_bins", default=80), MEL_FRAMES)},
    "fine_acoustics": {
        "input_ids": _step_ids("input_vocab_size", make.setting("n_codes_total")),
        "codebook_idx": make.constant(2),
        "attention_mask": make.omit,
    },
    "moshi": {"moshi_audio_codes": _AUDIO_CODES, "user_audio_codes": _AUDIO_CODES},
    "csm": {"input_values": make.omit},
    "CsmBackboneModel": {"input_ids": _step_ids("vocab_size", _BOOKS), "attention_mask": make.omit},
    # the word and the sound tokens of each step
    "kyutai_speech_to_text": {
        "input_ids": _step_ids("codebook_vocab_size", lambda view: view.config.num_codebooks + 1),
        "attention_mask": make.omit,
    },
    "speecht5": {
        "input_values": make.by_class("SpeechT5Model", embeddings, make.by_class(
            "TextToSpeech",
            make.token_ids("batch sequence", make.setting("vocab_size"), 1, TEXT_LENGTH), sound)),
        "decoder_input_values": make.by_class("SpeechT5Model", embeddings, spectrogram(
            make.setting("num_mel_bins"), DECODER_LENGTH)),  # the spectrogram so far
    },
    "audio-spectrogram-transformer": {"input_values": make.normal(
        "batch frames mels", 1, make.setting("max_length"), make.setting("num_mel_bins"))},
    "qwen2_audio": {"input_features": make.omit},
    "speech-encoder-decoder": {"input_features": make.omit},
    # as much sound as there is text: eight frames to a word
    "voxtral_realtime": {"input_features": make.normal("batch mels frames", 1, mel_bins,
                                                       8 * TEXT_LENGTH)},
    "vibevoice_acoustic_tokenizer_decoder": {"hidden_states": latents},
    "vibevoice_acoustic_tokenizer_encoder": _CHANNELLED | {
        "hidden_states": make.normal("batch 1 samples", 1, 1, AUDIO_SAMPLES, scale=0.1)},
    "Qwen3OmniMoeCode2WavTransformerModel": {
        "input_ids": make.omit, "attention_mask": make.omit, "inputs_embeds": embeddings},
    "Qwen3OmniMoeTalkerCodePredictorModelForConditionalGeneration": {
        "generation_steps": make.constant(1)},
    # sound tokens that are to become a sound
    "SeamlessM4TCodeHifiGan": {"input_ids": make.token_ids(
        "batch sequence", make.setting("unit_hifi_gan_vocab_size"), 1, TEXT_LENGTH)},
    "granite_speech5_encoder": {"input_features": spectrogram(320)},
    "granite_speech5_ctc": {"input_features": spectrogram(320)},
    "gemma4_audio": {"input_features": spectrogram(128)},
    "fun_asr_nano_encoder": {"input_features": spectrogram(560)},
    "phi4_multimodal_audio": {"hidden_states": spectrogram(80), "mask": make.constant(None)},
    # the spectrogram that goes with the samples: 50 frames to a second
    "xcodec2": _CHANNELLED | {"input_features": spectrogram(mel_bins, AUDIO_SAMPLES // 320)},
    "pop2piano": {
        "input_ids": make.omit, "attention_mask": make.omit, "input_features": embeddings},
    # the mel spectrogram of a sound of ten seconds, as an image
    **dict.fromkeys(("clap", "clap_audio_model"), {"input_features": make.normal(
        "batch 1 frames mels", 1, 1, 1001,
        make.first_setting("num_mel_bins", part="audio", default=64))}),
    # what else changes with time
    **dict.fromkeys(("time_series_transformer", "informer", "autoformer"), _LAGGED),
    "DecisionTransformerModel": {
        "states": _episode(make.setting("state_dim")),
        "actions": _episode(make.setting("act_dim")),
        "rewards": _episode(1),
        "returns_to_go": _episode(1),
        "timesteps": lambda view: integers(100, 1, TEXT_LENGTH, axes=("batch", "time")),
        "attention_mask": make.all_ones("batch time", 1, TEXT_LENGTH),
    },
}  # fmt: skip
"""By the family of the configuration, or by the class: what differs from the rules by name."""
