"""Families of transformers whose arguments need other makers than their names suggest."""

import numpy as np
import torch

from passnet.data.capture.catalog.transformers import arguments as usual
from passnet.data.capture.catalog.transformers import input_factories as make
from passnet.data.capture.catalog.transformers.input_factories import ConfigView
from passnet.data.capture.net import NetInput, image, integers

NUM_PATCHES = usual.GRID * usual.GRID
NUM_OBJECTS = 36
NUM_ENTITIES = 2
MENTION_WORDS = 4
_PICTURE = "batch *channels height width"
_IMAGE = (make.CHANNELS, make.IMAGE_SIZE)
"""Sizes of the axes of an image, after the first."""

_PATCH = (make.CHANNELS, make.PATCH_SIDE, make.PATCH_SIDE)
_EPISODE = ("batch time *width", 1, usual.TEXT_LENGTH)
_BOOKS = make.setting("num_codebooks")
_TILES = make.first_setting("max_num_tiles", part="vision", default=4)


def sized_image(height: make.AxisSize, width: make.AxisSize) -> make.InputMaker:
    """Return a maker of images of this height and width."""
    return make.normal(_PICTURE, 1, make.CHANNELS, height, width)


def sized_video(side: int) -> make.InputMaker:
    """Return a maker of videos of square frames of this side."""
    return make.normal("batch frames 3 height width", 1, usual.FRAMES, 3, side, side)


def tiled(num_tiles: int) -> make.InputMaker:
    """Return a maker of images as equal tiles."""

    def maker(view: ConfigView) -> NetInput:
        picture = image(1, view.channels, *view.size)
        tiles = picture.value[:, None].expand(-1, num_tiles, -1, -1, -1).contiguous()
        return NetInput(tiles, ("batch", "tiles", *picture.axes[1:]))

    return maker


def marked_ids(key: str, positions: list[int]) -> make.InputMaker:
    """Return a maker of text with a configured token at these positions."""

    def maker(view: ConfigView) -> NetInput:
        text = usual.input_ids(view)
        text.value[..., positions] = int(getattr(view.config, key))
        return text

    return maker


def corner_boxes(view: ConfigView) -> NetInput:
    """Make boxes of words, each with its corners in order, as shares of the page."""
    corners = [0.1, 0.1, 0.5, 0.2] * (2 if getattr(view.config, "dim_bbox", 4) == 8 else 1)
    boxes = np.tile(np.array(corners, np.float32), (1, usual.text_length(view), 1))
    return NetInput(torch.from_numpy(boxes), ("batch", "sequence", "corners"))


def latent_and_text_length(view: ConfigView) -> int:
    """Return the length of the text with the image before it."""
    return int(view.config.latent_query_num) + usual.TEXT_LENGTH


def image_position_mask(view: ConfigView) -> NetInput:
    """Make a mask of an image at the start of the text."""
    positions = np.arange(latent_and_text_length(view))[None]
    is_image = positions < int(view.config.latent_query_num)
    return NetInput(torch.from_numpy(is_image), ("batch", "sequence"))


def patch_pixels(view: ConfigView) -> int:
    """Return the numbers in a patch of an image."""
    return view.channels * view.patch**2


def past_length(view: ConfigView) -> int:
    """Return the length of a time series' past, with the lags before it."""
    return int(view.config.context_length) + max(view.config.lags_sequence)


def step_codes(key: str, num_books: make.AxisSize) -> make.InputMaker:
    """Return a maker of sound tokens of each step, the codebooks last."""
    sizes = (1, usual.TEXT_LENGTH, num_books)
    return make.token_ids("batch sequence *books", make.setting(key), *sizes)


_TEXT_ONLY = (
    "minimax_m3_vl glm_image chameleon emu3 dots3_note t5gemma2 colpali colqwen2 colmodernvbert"
)
_SIGLIP2 = "siglip2 siglip2_vision_model"
_MLLAMA = "mllama mllama_vision_model"
_STRIP = "minicpm_ocr_vision minicpmv4_7_vision"
_KOSMOS = "kosmos-2 kosmos-2.5"
_SEAMLESS = "seamless_m4t seamless_m4t_v2"
_MUSIC_DECODERS = "musicgen_decoder musicgen_melody_decoder"
_LAGGED = "time_series_transformer informer autoformer"
_STEP_CODES = "fine_acoustics kyutai_speech_to_text CsmBackboneModel"
_WITHOUT_IDS = "pop2piano Qwen3OmniMoeCode2WavTransformerModel"

_PAIR = make.normal("batch 2 *channels height width", 1, 2, *_IMAGE)
_ROWS_AND_COLUMNS = make.constant([[usual.GRID, usual.GRID]], "batch 2")
_HORIZON, _TIME_WIDTH = make.setting("prediction_length"), make.setting("num_time_features")
_FIRST_WORDS = make.constant([[MENTION_WORDS * k for k in range(NUM_ENTITIES)]], "batch entities")
_CODEBOOK_IDS = make.token_ids(
    "*books sequence", make.first_setting("vocab_size", part="decoder", default=1000),
    make.first_setting("num_codebooks", part="decoder", default=4), usual.DECODER_LENGTH,
)  # fmt: skip
"""Sound tokens, of all codebooks one after the other."""

_AUDIO_CODES = make.token_ids(
    "batch *books sequence", make.setting("audio_vocab_size"), 1, _BOOKS, usual.TEXT_LENGTH
)
"""Sound tokens so far, of all codebooks."""

_RULES: dict[str, dict[str, make.InputMaker]] = {
    # text
    "input_ids": {
        # three separators stand between a question and what it is asked of
        "longformer": make.by_class("ForQuestionAnswering|ForMultipleChoice",
                                    marked_ids("sep_token_id", [8, 9, -1]), usual.input_ids),
        "splinter": make.by_class(  # a word is asked for
            "ForPreTraining", marked_ids("question_token_id", [8]), usual.input_ids),
        _KOSMOS: make.token_ids("batch sequence", usual.vocabulary, 1, latent_and_text_length),
        _SEAMLESS: make.by_class("TextToUnit", make.omit, usual.input_ids),
        _MUSIC_DECODERS: _CODEBOOK_IDS,
        "fine_acoustics": step_codes("input_vocab_size", make.setting("n_codes_total")),
        "CsmBackboneModel": step_codes("vocab_size", _BOOKS),
        "kyutai_speech_to_text": step_codes(  # the word and the sound tokens of each step
            "codebook_vocab_size", lambda view: view.config.num_codebooks + 1),
        "SeamlessM4TCodeHifiGan": make.token_ids(  # sound tokens that are to become a sound
            "batch sequence", make.setting("unit_hifi_gan_vocab_size"), 1, usual.TEXT_LENGTH),
        "Blip2TextModelWithProjection Blip2ForImageTextRetrieval": usual.qformer_input_ids,
        _WITHOUT_IDS: make.omit,
    },
    "attention_mask": {
        f"vits {_KOSMOS} {_MUSIC_DECODERS} {_STEP_CODES} {_WITHOUT_IDS}": make.omit,
        _SEAMLESS: make.by_class("TextToUnit", make.omit, usual.attention_mask),
        "DecisionTransformerModel": make.all_ones("batch time", 1, usual.TEXT_LENGTH),
    },
    "inputs_embeds": {
        _SEAMLESS: make.by_class("TextToUnit", usual.embeddings, make.omit),
        "Qwen3OmniMoeCode2WavTransformerModel": usual.embeddings,
    },
    "decoder_input_ids": {
        "musicgen musicgen_melody": _CODEBOOK_IDS,
        "dia": make.token_ids(
            "batch sequence *channels", make.first_setting("vocab_size", part="decoder"), 1,
            usual.DECODER_LENGTH, make.first_setting("num_channels", part="decoder", default=9)),
    },
    "context_input_ids": {"rag": usual.retrieved_ids},
    "context_attention_mask": {"rag": make.filled_like(usual.retrieved_ids)},
    # how well each document fits the question
    "doc_scores": {"rag": make.normal("batch documents", 1, make.setting("n_docs"))},
    # what the text names, and where in it
    "entity_ids": {"luke": make.by_class("Entity", make.token_ids(
        "batch entities", make.setting("entity_vocab_size"), 1, NUM_ENTITIES), make.omit)},
    "entity_position_ids": {"luke": make.by_class("Entity", make.constant(
        np.arange(NUM_ENTITIES * MENTION_WORDS).reshape(1, NUM_ENTITIES, MENTION_WORDS),
        "batch entities words"), make.omit)},
    "entity_attention_mask": {"luke": make.by_class(
        "Entity", make.all_ones("batch entities", 1, NUM_ENTITIES), make.omit)},
    **dict.fromkeys(("entity_start_positions", "entity_end_positions"), {"luke": _FIRST_WORDS}),
    "bbox": {"bros udop": corner_boxes},
    "task_inputs": {"oneformer": make.token_ids(  # the name of the task, as text
        "batch sequence", make.setting("text_encoder_vocab_size"), 1,
        make.setting("task_seq_len"))},
    "generation_steps": {
        "Qwen3OmniMoeTalkerCodePredictorModelForConditionalGeneration": make.constant(1)},
    "return_loss": {"flava": make.constant(False)},
    # images and videos
    "pixel_values": {
        f"udop {_TEXT_ONLY}": make.omit,
        _SIGLIP2: make.normal("batch patches *width", 1, NUM_PATCHES, patch_pixels),
        # one image, cut into tiles, all of which are there
        _MLLAMA: make.normal("batch images tiles *channels height width", 1, 1, _TILES, *_IMAGE),
        "idefics2 idefics3 smolvlm modernvbert": tiled(1),
        "llava_onevision": tiled(2),
        "llava_next llava_next_video granite4_vision": tiled(3),
        _STRIP: make.normal(  # the patches of an image, side by side
            "batch *channels *side width", 1, make.CHANNELS, make.PATCH_SIDE,
            lambda view: view.patch * NUM_PATCHES),
        "kimi_k25 kimi_k25_vision": make.normal(
            "patches *channels *side *side", NUM_PATCHES, *_PATCH),
        "paddleocr_vl_vision": make.normal(
            "batch patches *channels *side *side", 1, NUM_PATCHES, *_PATCH),
        "molmo2_vision": make.normal("batch patches *width", 1, usual.num_patches, patch_pixels),
        "efficientloftr lightglue superglue": _PAIR,
        "vilt": make.by_class("ImagesAndText", _PAIR, usual.pixel_values),
        "pp_ocrv5_mobile_rec pp_ocrv5_server_rec pp_ocrv6_small_rec pp_ocrv6_tiny_rec":
            make.by_class("ForTextRecognition", sized_image(  # the image of a line of text
                lambda view: 96 if "Mobile" in view.class_name else 48, 320), usual.pixel_values),
        "depth_pro": sized_image(1536, 1536),
        "janus_vqgan": sized_image(512, 512),
        "seggpt": sized_image(448, 448),
        "UVDocModel": sized_image(712, 488),
        "idefics": make.normal("batch images *channels height width", 1, 1, *_IMAGE),  # one image
        "timesformer videomae vivit vjepa2 xclip videoprism instructblipvideo": usual.video,
        "xclip_vision_model": make.normal(  # frames as a batch
            _PICTURE, make.setting("num_frames"), *_IMAGE),
        "tvp": sized_video(448),
    },
    "pixel_values_videos": {
        "pe_video pe_video_encoder pe_audio_video pe_audio_video_encoder": sized_video(336),
        "videoprism_vision_model videomt": usual.video,
    },
    **dict.fromkeys(("prompt_pixel_values", "prompt_masks"), {"seggpt": sized_image(448, 448)}),
    "image_grid_thw": {_TEXT_ONLY: make.omit},
    "image_embeds_position_mask": {_KOSMOS: image_position_mask},
    "image_attention_mask": {"idefics": make.all_ones(  # every word may look at the one image
        "batch sequence images", 1, usual.TEXT_LENGTH, 1)},
    "pixel_attention_mask": {_SIGLIP2: make.all_ones("batch patches", 1, NUM_PATCHES)},
    "spatial_shapes": {_SIGLIP2: _ROWS_AND_COLUMNS},
    "target_sizes": {_STRIP: _ROWS_AND_COLUMNS},
    "aspect_ratio_ids": {_MLLAMA: make.all_ones("batch images", 1, 1)},
    "aspect_ratio_mask": {_MLLAMA: make.all_ones("batch images tiles", 1, 1, _TILES)},
    # the objects that another net found in an image: features of each, and where it is
    "visual_feats": {"lxmert": make.normal(
        "batch objects *width", 1, NUM_OBJECTS, make.setting("visual_feat_dim"))},
    "visual_pos": {"lxmert": make.normal(
        "batch objects *width", 1, NUM_OBJECTS, make.setting("visual_pos_dim"))},
    # the features of an image that is asked
    "encoder_hidden_states": {"blip_2_qformer": make.normal(
        "batch patches *width", 1, NUM_PATCHES + 1, make.setting("encoder_hidden_size"))},
    # for optical flow two images after each other, with the patch of 3 by 3 around each pixel
    "inputs": {"perceiver": make.by_class("PerceiverModel", usual.embeddings, make.by_class(
        "OpticalFlow",
        make.normal("batch 2 27 height width", 1, 2, 27, make.setting("train_size")), make.omit))},
    "hidden_states": {
        "florence_vision": make.normal(_PICTURE, 1, *_IMAGE),
        "slanet": make.by_class("SLAHead", make.normal(  # a table, as columns of features
            "batch columns *width", 1, NUM_PATCHES, make.setting("post_conv_out_channels")),
            usual.pixel_values),
        "slanext": make.by_class("Backbone", usual.pixel_values, usual.hidden_states),
        "pp_ocrv5_mobile_det": usual.pixel_values,
        "vibevoice_acoustic_tokenizer_decoder": usual.latents,
        "vibevoice_acoustic_tokenizer_encoder": make.normal(
            "batch 1 samples", 1, 1, usual.AUDIO_SAMPLES, scale=0.1),
        "phi4_multimodal_audio": usual.spectrogram(80),
    },
    "mask": {"phi4_multimodal_audio": make.constant(None)},
    # sounds
    "input_values": {
        "csm musicgen": make.omit,
        "audio-spectrogram-transformer": make.normal(
            "batch frames mels", 1, make.setting("max_length"), make.setting("num_mel_bins")),
        "speecht5": make.by_class("SpeechT5Model", usual.embeddings, make.by_class(
            "TextToSpeech",
            make.token_ids("batch sequence", make.setting("vocab_size"), 1, usual.TEXT_LENGTH),
            usual.sound)),
        "encodec dac mimi mimi_encoder xcodec xcodec2 pocket_tts_audio_tokenizer "
        "PocketTTSAudioTokenizerEncoderModel pe_audio "
        "pe_audio_encoder pe_audio_video pe_audio_video_encoder vibevoice_acoustic_tokenizer "
        "vibevoice_acoustic_tokenizer_encoder": make.normal(
            "batch *channels samples", 1,
            make.first_setting("audio_channels", "num_channels", default=1), usual.AUDIO_SAMPLES),
    },
    "decoder_input_values": {"speecht5": make.by_class(  # the spectrogram so far
        "SpeechT5Model", usual.embeddings,
        usual.spectrogram(make.setting("num_mel_bins"), usual.DECODER_LENGTH))},
    "input_features": {
        "qwen2_audio speech-encoder-decoder musicgen_melody": make.omit,
        _SEAMLESS: lambda view: None if "input_ids" in view.params else usual.input_features(view),
        "granite_speech5_encoder granite_speech5_ctc": usual.spectrogram(320),
        "gemma4_audio": usual.spectrogram(128),
        "fun_asr_nano_encoder": usual.spectrogram(560),
        # the spectrogram that goes with the samples: 50 frames to a second
        "xcodec2": usual.spectrogram(usual.mel_bins, usual.AUDIO_SAMPLES // 320),
        "voxtral_realtime": make.normal(  # as much sound as text: eight frames to a word
            "batch mels frames", 1, usual.mel_bins, 8 * usual.TEXT_LENGTH),
        "clap clap_audio_model": make.normal(  # a sound of ten seconds, as an image
            "batch 1 frames mels", 1, 1, 1001,
            make.first_setting("num_mel_bins", part="audio", default=64)),
        "pop2piano": usual.embeddings,
    },
    "input_features_mask": {"AudioFlamingo3Encoder": usual.input_features_mask},
    # a mel spectrogram that is to become a sound
    "mel_spectrogram": {"qwen2_5_omni_bigvgan": make.normal(
        "batch mels frames", 1, make.first_setting("mel_dim", "num_mel_bins", default=80),
        usual.MEL_FRAMES)},
    **dict.fromkeys(("moshi_audio_codes", "user_audio_codes"), {"moshi": _AUDIO_CODES}),
    "codebook_idx": {"fine_acoustics": make.constant(2)},
    # time series, and what was seen and done at each time
    "past_values": {_LAGGED: make.normal("batch time", 1, past_length)},
    "past_time_features": {_LAGGED: make.normal("batch time *width", 1, past_length, _TIME_WIDTH)},
    "past_observed_mask": {_LAGGED: make.all_ones("batch time", 1, past_length)},
    "future_values": {_LAGGED: make.normal("batch time", 1, _HORIZON)},
    "future_time_features": {_LAGGED: make.normal("batch time *width", 1, _HORIZON, _TIME_WIDTH)},
    "states": {"DecisionTransformerModel": make.normal(*_EPISODE, make.setting("state_dim"))},
    "actions": {"DecisionTransformerModel": make.normal(*_EPISODE, make.setting("act_dim"))},
    **dict.fromkeys(("rewards", "returns_to_go"),
                    {"DecisionTransformerModel": make.normal(*_EPISODE, 1)}),
    "timesteps": {"DecisionTransformerModel":
                  lambda view: integers(100, 1, usual.TEXT_LENGTH, axes=("batch", "time"))},
}  # fmt: skip
"""Argument -> families or classes that take it otherwise -> its maker for them."""


def own_makers(view: ConfigView) -> dict[str, make.InputMaker]:
    """Return the makers of arguments that a class, else its family, takes otherwise."""

    def named(name: str) -> dict[str, make.InputMaker]:
        return {
            argument: maker
            for argument, makers in _RULES.items()
            for names, maker in makers.items()
            if name in names.split()
        }

    return named(view.class_name) or named(view.family)
