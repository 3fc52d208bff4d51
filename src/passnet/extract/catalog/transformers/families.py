"""Families of transformers whose arguments are made otherwise than their names say."""

from __future__ import annotations

from passnet.extract.catalog.transformers import rare_arguments as rare
from passnet.extract.catalog.transformers.arguments import (
    TEXT_LENGTH,
    Maker,
    attention_mask,
    decoder_input_values,
    input_features,
    input_ids,
    input_values,
    pixel_values,
    qformer_input_ids,
    video,
)
from passnet.extract.catalog.transformers.required_arguments import (
    embeddings,
    hidden_states,
    latents,
    retrieved_ids,
)
from passnet.extract.net import NetInput, image, integers, ones

_SIGLIP2: dict[str, Maker] = {
    "pixel_values": rare.rows_of_patches,
    "pixel_attention_mask": rare.seen_patches,
    "spatial_shapes": rare.rows_and_columns,
}
_MLLAMA: dict[str, Maker] = {
    "pixel_values": rare.tiles,
    "aspect_ratio_ids": lambda look: ones(1, 1, axes=("batch", "images")),
    "aspect_ratio_mask": rare.tile_mask,
}
_STRIP: dict[str, Maker] = {
    "pixel_values": rare.strip_of_patches,
    "target_sizes": rare.rows_and_columns,
}
_TEXT_ONLY: dict[str, Maker] = {"pixel_values": rare.left_out, "image_grid_thw": rare.left_out}
_PE_VIDEO: dict[str, Maker] = {"pixel_values_videos": rare.sized_video(336)}
_LINE: dict[str, Maker] = {
    "pixel_values": rare.by_word("ForTextRecognition", rare.text_line, pixel_values),
}
_KEYPOINTS: dict[str, Maker] = {"pixel_values": rare.pair}
_SEAMLESS: dict[str, Maker] = {
    "input_ids": rare.by_word("TextToUnit", rare.left_out, input_ids),
    "attention_mask": rare.by_word("TextToUnit", rare.left_out, attention_mask),
    "inputs_embeds": rare.by_word("TextToUnit", embeddings, rare.left_out),
    "input_features": lambda look: None if "input_ids" in look.params else input_features(look),
}

_KOSMOS: dict[str, Maker] = {
    "input_ids": rare.input_ids_after_image,
    "attention_mask": rare.left_out,
    "image_embeds_position_mask": rare.image_position_mask,
}

FAMILIES: dict[str, dict[str, Maker]] = {
    "vits": {"attention_mask": rare.left_out},
    "longformer": {"input_ids": rare.question_and_text},
    "dia": {"decoder_input_ids": rare.channel_ids},
    "qwen2_5_omni_bigvgan": {"mel_spectrogram": rare.mel_spectrogram},
    "udop": {"pixel_values": rare.left_out},
    "kosmos-2": _KOSMOS,
    "kosmos-2.5": _KOSMOS,
    "oneformer": {"task_inputs": rare.task_inputs},
    "musicgen_decoder": {"input_ids": rare.codebook_ids, "attention_mask": rare.left_out},
    "musicgen_melody_decoder": {"input_ids": rare.codebook_ids, "attention_mask": rare.left_out},
    "musicgen": {"decoder_input_ids": rare.codebook_ids, "input_values": rare.left_out},
    "musicgen_melody": {"decoder_input_ids": rare.codebook_ids, "input_features": rare.left_out},
    "fine_acoustics": {
        "input_ids": rare.fine_ids,
        "codebook_idx": rare.number(2),
        "attention_mask": rare.left_out,
    },
    "kimi_k25": {"pixel_values": rare.unflattened},
    "kimi_k25_vision": {"pixel_values": rare.unflattened},
    "florence_vision": {"hidden_states": lambda look: image(1, look.channels, *look.size)},
    "slanet": {"hidden_states": rare.by_word("SLAHead", rare.slanet_columns, pixel_values)},
    "siglip2": _SIGLIP2,
    "siglip2_vision_model": _SIGLIP2,
    "mllama": _MLLAMA,
    "mllama_vision_model": _MLLAMA,
    "minimax_m3_vl": _TEXT_ONLY,
    "glm_image": _TEXT_ONLY,
    "chameleon": _TEXT_ONLY,
    "emu3": _TEXT_ONLY,
    "pe_video": _PE_VIDEO,
    "pe_video_encoder": _PE_VIDEO,
    "pe_audio_video": _PE_VIDEO,
    "pe_audio_video_encoder": _PE_VIDEO,
    "efficientloftr": _KEYPOINTS,
    "lightglue": _KEYPOINTS,
    "superglue": _KEYPOINTS,
    "pp_ocrv5_mobile_rec": _LINE,
    "pp_ocrv5_server_rec": _LINE,
    "pp_ocrv6_small_rec": _LINE,
    "pp_ocrv6_tiny_rec": _LINE,
    "pp_ocrv5_mobile_det": {"hidden_states": pixel_values},
    "paddleocr_vl_vision": {"pixel_values": rare.square_patches},
    "minicpm_ocr_vision": _STRIP,
    "depth_pro": {"pixel_values": rare.sized_image(1536, 1536)},
    "janus_vqgan": {"pixel_values": rare.sized_image(512, 512)},
    "xclip_vision_model": {"pixel_values": rare.frames_alone},
    "videoprism_vision_model": {"pixel_values_videos": video},
    "videomt": {"pixel_values_videos": video},
    "instructblipvideo": {"pixel_values": video},
    "idefics": {"pixel_values": rare.single_image, "image_attention_mask": rare.images_before_text},
    "lxmert": {"visual_feats": rare.visual_feats, "visual_pos": rare.visual_pos},
    "moshi": {"moshi_audio_codes": rare.audio_codes, "user_audio_codes": rare.audio_codes},
    "csm": {"input_values": rare.left_out},
    "kyutai_speech_to_text": {"input_ids": rare.text_and_codes, "attention_mask": rare.left_out},
    "seamless_m4t": _SEAMLESS,
    "seamless_m4t_v2": _SEAMLESS,
    "speecht5": {
        "input_values": rare.by_word("SpeechT5Model", embeddings, input_values),
        "decoder_input_values": rare.by_word("SpeechT5Model", embeddings, decoder_input_values),
    },
    "rag": {
        "context_input_ids": retrieved_ids,
        "context_attention_mask": rare.words_of(retrieved_ids),
        "doc_scores": rare.found_scores,
    },
    "luke": {
        "entity_ids": rare.by_word("Entity", rare.entity_ids, rare.left_out),
        "entity_position_ids": rare.by_word("Entity", rare.entity_position_ids, rare.left_out),
        "entity_attention_mask": rare.by_word("Entity", rare.entity_mask, rare.left_out),
        "entity_start_positions": rare.entity_ends,
        "entity_end_positions": rare.entity_ends,
    },
    "perceiver": {
        "inputs": rare.by_word(
            "PerceiverModel",
            embeddings,
            rare.by_word("OpticalFlow", rare.optical_flow, rare.left_out),
        ),
    },
    "qwen2_audio": {"input_features": rare.left_out},
    "dots3_note": _TEXT_ONLY,
    "t5gemma2": _TEXT_ONLY,
    "colpali": _TEXT_ONLY,
    "colqwen2": _TEXT_ONLY,
    "colmodernvbert": _TEXT_ONLY,
    "minicpmv4_7_vision": _STRIP,
    "molmo2_vision": {"pixel_values": rare.all_patches},
    "voxtral_realtime": {"input_features": rare.frames_of_text},
    "vibevoice_acoustic_tokenizer_decoder": {"hidden_states": latents},
    "CsmBackboneModel": {"input_ids": rare.codes_of_steps, "attention_mask": rare.left_out},
    "Qwen3OmniMoeCode2WavTransformerModel": {
        "input_ids": rare.left_out,
        "attention_mask": rare.left_out,
        "inputs_embeds": embeddings,
    },
    "vibevoice_acoustic_tokenizer_encoder": {"hidden_states": rare.samples},
    "blip_2_qformer": {"encoder_hidden_states": rare.seen_features},
    "splinter": {"input_ids": rare.by_word("ForPreTraining", rare.text_with_question, input_ids)},
    "Qwen3OmniMoeTalkerCodePredictorModelForConditionalGeneration": {
        "generation_steps": rare.number(1)
    },
    "SeamlessM4TCodeHifiGan": {"input_ids": rare.unit_ids},
    "tvp": {"pixel_values": rare.sized_video(448)},
    "speech-encoder-decoder": {"input_features": rare.left_out},
    "vilt": {"pixel_values": rare.by_word("ImagesAndText", rare.pair, pixel_values)},
    "granite_speech5_encoder": {"input_features": rare.frames_of(320)},
    "granite_speech5_ctc": {"input_features": rare.frames_of(320)},
    "phi4_multimodal_audio": {"hidden_states": rare.frames_of(80), "mask": rare.number(None)},
    "xcodec2": {"input_features": rare.frames_of_sound},
    "seggpt": dict.fromkeys(
        ("pixel_values", "prompt_pixel_values", "prompt_masks"), rare.sized_image(448, 448)
    ),
    "Blip2TextModelWithProjection": {"input_ids": qformer_input_ids},
    "Blip2ForImageTextRetrieval": {"input_ids": qformer_input_ids},
    "gemma4_audio": {"input_features": rare.frames_of(128)},
    "fun_asr_nano_encoder": {"input_features": rare.frames_of(560)},
    "pop2piano": {
        "input_ids": rare.left_out,
        "attention_mask": rare.left_out,
        "input_features": embeddings,
    },
    "clap": {"input_features": rare.spectrogram_image},
    "clap_audio_model": {"input_features": rare.spectrogram_image},
    "slanext": {"hidden_states": rare.by_word("Backbone", pixel_values, hidden_states)},
    "flava": {"return_loss": lambda look: NetInput(False)},
    "DecisionTransformerModel": {
        "states": rare.episode("state_dim"),
        "actions": rare.episode("act_dim"),
        "rewards": rare.episode(""),
        "returns_to_go": rare.episode(""),
        "timesteps": lambda look: integers(100, 1, TEXT_LENGTH, axes=("batch", "time")),
        "attention_mask": lambda look: ones(1, TEXT_LENGTH, axes=("batch", "time")),
    },
}
"""By the family of the configuration, or by the class: what differs from the rules above."""
