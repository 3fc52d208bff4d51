"""diffusers: the denoisers and autoencoders of image, video and audio pipelines."""

import inspect
from collections.abc import Sequence
from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Domain, Net, NetInput, floats, integers, ones

ADDS = "UNets, diffusion transformers with modulation and joint attention, image and video VAEs"
PACKAGES = ("diffusers", "transformers", "torchvision")

DEPTHS = {
    "num_layers", "num_single_layers", "num_mmdit_layers", "num_single_dit_layers", "n_layers",
    "n_refiner_layers", "num_refiner_layers", "depth",
}  # fmt: skip
"""Options for the number of blocks of a kind."""

IMAGE, VIDEO, AUDIO = "text-to-image", "text-to-video", "text-to-audio"
CODE_IMAGE, CODE_VIDEO, CODE_AUDIO = "image-coding", "video-coding", "audio-coding"
T_INT, T_REAL = {"timestep": ("int", 1000, 1)}, {"timestep": (1,)}
LATENT = {"sample": (1, 4, 32, 32), **T_INT}
PICTURE, CLIP = {"sample": (1, 3, 128, 128)}, {"sample": (1, 3, 9, 64, 64)}
SOUND = {"sample": ("audio", 1, 2, 8192)}
LAYERS = {"num_layers": 3}
JOINT = {"num_layers": 2, "num_single_layers": 3}


def _states(shape: tuple[Any, ...], time: dict[str, Any], text: tuple[int, ...]) -> dict[str, Any]:
    """Return the inputs of transformers in order: latents, the time, the text."""
    return {"hidden_states": shape, **time, "encoder_hidden_states": text}


FLUX = {
    "hidden_states": (1, 256, 64), "encoder_hidden_states": (1, 64, 4096), **T_REAL,
    "img_ids": ("ids", 256, 3), "txt_ids": ("ids", 64, 3),
}  # fmt: skip
POOLED = {"pooled_projections": (1, 768), "guidance": (1,)}
XL = {
    "sample_size": 32, "cross_attention_dim": 2048, "attention_head_dim": (5, 10, 20),
    "block_out_channels": (320, 640, 1280), "transformer_layers_per_block": (1, 1, 2),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "use_linear_projection": True, "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256, "projection_class_embeddings_input_dim": 2816,
}  # fmt: skip
SDXL = LATENT | {
    "encoder_hidden_states": (1, 77, 2048),
    "added_cond_kwargs": {"text_embeds": (1, 1280), "time_ids": (1, 6)},
}  # fmt: skip
SD = {
    "down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4,
    "block_out_channels": (128, 256, 512, 512), "layers_per_block": 2,
}  # fmt: skip

ALLEGRO_ROTARY = [
    [[("ids", size, 32)] * 2 for size in (4, 16, 16)],
    [("int", size, 1, 1024) for size in (4, 16, 16)],
]
"""Cosines and sines along frames, height and width; and where in them each position is."""

SD3 = _states((1, 16, 32, 32), T_REAL, (1, 154, 4096)) | {"pooled_projections": (1, 2048)}

NETS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    # UNets and what is beside them
    "unet-ddpm": ("UNet2DModel", {}, {"sample": (1, 3, 64, 64), **T_INT}, "image-generation"),
    "unet-1d": ("UNet1DModel", {"extra_in_channels": 64},
                {"sample": ("audio", 1, 2, 4096), **T_INT}, "audio-generation"),
    "unet-sd": ("UNet2DConditionModel", {"cross_attention_dim": 768},
                LATENT | {"encoder_hidden_states": (1, 77, 768)}, IMAGE),
    "unet-sd2": ("UNet2DConditionModel", {"cross_attention_dim": 1024, "attention_head_dim":
                 (5, 10, 20, 20), "use_linear_projection": True},
                 LATENT | {"encoder_hidden_states": (1, 77, 1024)}, IMAGE),
    "unet-sdxl": ("UNet2DConditionModel", XL, SDXL, IMAGE),
    "unet-3d": ("UNet3DConditionModel", {}, {"sample": (1, 4, 8, 32, 32), **T_INT,
                "encoder_hidden_states": (1, 77, 1024)}, VIDEO),
    "unet-motion": ("UNetMotionModel", {"cross_attention_dim": 768},
                    {"sample": (1, 4, 8, 32, 32), **T_INT,
                     "encoder_hidden_states": ("frames", 8, 77, 768)},
                    VIDEO),
    "unet-spatio-temporal": ("UNetSpatioTemporalConditionModel", {},
        {"sample": ("video", 1, 8, 8, 32, 32), **T_INT, "encoder_hidden_states": (1, 1, 1024),
         "added_time_ids": (1, 3)}, "image-to-video"),
    "controlnet-sd": ("ControlNetModel", {"cross_attention_dim": 768}, LATENT |
        {"encoder_hidden_states": (1, 77, 768), "controlnet_cond": (1, 3, 256, 256)}, IMAGE),
    "controlnet-flux": ("FluxControlNetModel", JOINT | {"guidance_embeds": True},
                        FLUX | POOLED | {"controlnet_cond": (1, 256, 64)}, IMAGE),
    "prior": ("PriorTransformer", LAYERS, {"hidden_states": (1, 768), **T_INT,
        "proj_embedding": (1, 768), "encoder_hidden_states": (1, 77, 768)}, IMAGE),
    # transformers of images
    "dit": ("DiTTransformer2DModel", LAYERS | {"out_channels": 8}, {"hidden_states": (1, 4, 32, 32),
            **T_INT, "class_labels": ("int", 1000, 1)}, "image-generation"),
    "pixart": ("PixArtTransformer2DModel", LAYERS | {"sample_size": 64, "caption_channels": 4096},
               _states((1, 4, 32, 32), T_INT, (1, 120, 4096)), IMAGE),
    "hunyuan-dit": ("HunyuanDiT2DModel", {"num_layers": 4, "in_channels": 4, "patch_size": 2,
        "hidden_size": 1408, "use_style_cond_and_image_meta_size": False},
        _states((1, 4, 32, 32), T_REAL, (1, 77, 1024)) | {
            "text_embedding_mask": ("ones", 1, 77), "encoder_hidden_states_t5": (1, 256, 2048),
            "text_embedding_mask_t5": ("ones", 1, 256),
            "image_rotary_emb": [("ids", 256, 88), ("ids", 256, 88)]}, IMAGE),
    "sd3": ("SD3Transformer2DModel", LAYERS, SD3, IMAGE),
    "sd35": ("SD3Transformer2DModel", LAYERS | {"qk_norm": "rms_norm",
             "dual_attention_layers": (0, 1)}, SD3, IMAGE),
    "flux": ("FluxTransformer2DModel", JOINT | {"guidance_embeds": True}, FLUX | POOLED, IMAGE),
    "flux2": ("Flux2Transformer2DModel", JOINT, _states((1, 256, 128), T_REAL, (1, 64, 15360)) | {
        "img_ids": ("ids", 256, 4), "txt_ids": ("ids", 64, 4), "guidance": (1,)}, IMAGE),
    "chroma": ("ChromaTransformer2DModel", JOINT, FLUX, IMAGE),
    "auraflow": ("AuraFlowTransformer2DModel", {"num_mmdit_layers": 2, "num_single_dit_layers": 3},
                 _states((1, 4, 32, 32), T_REAL, (1, 77, 2048)), IMAGE),
    "sana": ("SanaTransformer2DModel", LAYERS, _states((1, 32, 32, 32), T_REAL, (1, 77, 2304)),
             IMAGE),
    "lumina2": ("Lumina2Transformer2DModel", LAYERS | {"num_refiner_layers": 1},
                _states((1, 16, 32, 32), T_REAL, (1, 77, 1024))
                | {"encoder_attention_mask": ("mask", 1, 77)}, IMAGE),
    "cogview4": ("CogView4Transformer2DModel", LAYERS,
                 _states((1, 16, 32, 32), T_REAL, (1, 64, 4096)) | {"original_size": (1, 2),
                 "target_size": (1, 2), "crop_coords": (1, 2)}, IMAGE),
    "qwen-image": ("QwenImageTransformer2DModel", LAYERS,
                   _states((1, 256, 64), T_REAL, (1, 64, 3584)) | {"encoder_hidden_states_mask":
                   ("ones", 1, 64), "img_shapes": ("value", [[(1, 16, 16)]])}, IMAGE),
    "z-image": ("ZImageTransformer2DModel", {"n_layers": 3, "n_refiner_layers": 1},
        {"x": [("bare", 16, 1, 32, 32)], "t": (1,), "cap_feats": [("bare", 64, 2560)]}, IMAGE),
    "prx": ("PRXTransformer2DModel", {"depth": 3, "axes_dim": [32, 32]},
            _states((1, 16, 32, 32), T_REAL, (1, 77, 2304)), IMAGE),
    # transformers of videos and audio
    "latte": ("LatteTransformer3DModel", {"num_layers": 2, "in_channels": 4, "out_channels": 8,
        "attention_head_dim": 72, "patch_size": 2, "sample_size": 32, "cross_attention_dim": 1152,
        "caption_channels": 4096, "activation_fn": "gelu-approximate", "attention_bias": True,
        "norm_elementwise_affine": False, "norm_type": "ada_norm_single", "video_length": 8},
        _states((1, 4, 8, 32, 32), T_INT, (1, 77, 4096)), VIDEO),
    "cogvideox": ("CogVideoXTransformer3DModel", LAYERS | {"sample_width": 32, "sample_height": 32,
        "sample_frames": 9}, _states(("video", 1, 3, 16, 32, 32), T_INT, (1, 226, 4096)), VIDEO),
    "wan": ("WanTransformer3DModel", LAYERS, _states((1, 16, 3, 32, 32), T_INT, (1, 128, 4096)),
            VIDEO),
    "ltx": ("LTXVideoTransformer3DModel", LAYERS, _states((1, 256, 128), T_INT, (1, 128, 4096)) | {
        "encoder_attention_mask": ("ones", 1, 128), "num_frames": ("value", 4),
        "height": ("value", 8), "width": ("value", 8)}, VIDEO),
    "mochi": ("MochiTransformer3DModel", LAYERS, _states((1, 12, 3, 32, 32), T_INT, (1, 256, 4096))
              | {"encoder_attention_mask": ("mask", 1, 256)}, VIDEO),
    "hunyuan-video": ("HunyuanVideoTransformer3DModel", JOINT | {"num_refiner_layers": 1},
        _states((1, 16, 3, 32, 32), T_INT, (1, 64, 4096))
        | {"encoder_attention_mask": ("ones", 1, 64)} | POOLED, VIDEO),
    "allegro": ("AllegroTransformer3DModel", LAYERS, {"hidden_states": (1, 4, 4, 32, 32), **T_INT,
        "encoder_hidden_states": (1, 1, 64, 4096), "attention_mask": ("mask", 1, 4, 32, 32),
        "encoder_attention_mask": ("mask", 1, 1, 64), "image_rotary_emb": ALLEGRO_ROTARY}, VIDEO),
    "cosmos": ("CosmosTransformer3DModel", LAYERS,
               _states((1, 16, 3, 32, 32), T_REAL, (1, 64, 1024))
               | {"fps": ("value", 30), "padding_mask": (1, 1, 32, 32)}, VIDEO),
    "transformer-temporal": ("TransformerTemporalModel", {"num_attention_heads": 8,
        "attention_head_dim": 40, "in_channels": 320, "norm_num_groups": 32},
        {"hidden_states": ("frames", 8, 320, 16, 16), "num_frames": ("value", 8)}, VIDEO),
    "stable-audio": ("StableAudioDiTModel", LAYERS,
        _states(("audio", 1, 64, 1024), T_REAL, (1, 130, 768)) | {"global_hidden_states":
        (1, 1, 1536), "rotary_embedding": [("ids", 1025, 32), ("ids", 1025, 32)]}, AUDIO),
    # autoencoders
    "vae-sd": ("AutoencoderKL", SD, PICTURE, CODE_IMAGE),
    "vae-flux": ("AutoencoderKL", SD | {"latent_channels": 16, "use_quant_conv": False,
                 "use_post_quant_conv": False}, PICTURE, CODE_IMAGE),
    "vae-flux2": ("AutoencoderKLFlux2", {}, PICTURE, CODE_IMAGE),
    "vae-tiny": ("AutoencoderTiny", {}, PICTURE, CODE_IMAGE),
    "vae-dc": ("AutoencoderDC", {}, PICTURE, CODE_IMAGE),
    "vq": ("VQModel", SD, PICTURE, CODE_IMAGE),
    "vae-temporal": ("AutoencoderKLTemporalDecoder", SD | {"up_block_types": None},
                     {"sample": ("frames", 4, 3, 64, 64), "num_frames": ("value", 4)}, CODE_VIDEO),
    "vae-cogvideox": ("AutoencoderKLCogVideoX", {}, CLIP, CODE_VIDEO),
    "vae-hunyuan-video": ("AutoencoderKLHunyuanVideo", {}, CLIP, CODE_VIDEO),
    "vae-ltx": ("AutoencoderKLLTXVideo", {}, CLIP, CODE_VIDEO),
    "vae-mochi": ("AutoencoderKLMochi", {}, {"sample": (1, 3, 7, 64, 64)}, CODE_VIDEO),
    "vae-wan": ("AutoencoderKLWan", {}, {"sample": (1, 3, 5, 64, 64)}, CODE_VIDEO),
    "vae-qwen-image": ("AutoencoderKLQwenImage", {}, {"sample": (1, 3, 1, 64, 64)}, CODE_IMAGE),
    "vae-oobleck": ("AutoencoderOobleck", {}, SOUND, CODE_AUDIO),
}  # fmt: skip
"""Entry -> class, constructor arguments, inputs, and task."""

names = listed("diffusers", NETS)


def build(name: str) -> Net:
    """Build a denoiser or an autoencoder in its documented width, with few blocks."""
    class_name, options, inputs, task = row_of(NETS, name)
    net_class = getattr(import_with_torchvision("diffusers"), class_name)
    options = {key: value for key, value in options.items() if value is not None}
    defaults = inspect.signature(net_class).parameters
    changes = tuple(
        f"{key} {defaults[key].default} -> {value}"
        for key, value in options.items()
        if key in DEPTHS
    )
    domain: Domain = "audio" if "audio" in task else "cv" if "to" not in task else "multimodal"
    kwargs = {key: _input(key, spec) for key, spec in inputs.items()}
    return Net(net_class(**options).eval(), (), kwargs, domain, task, changes)


def _input(key: str, spec: Any) -> NetInput:
    """Return the input of a name.

    A shape stands for normal random numbers, or for the kind of values named by a word before it; a
    list or a dictionary holds several.
    """
    if isinstance(spec, list):
        return NetInput([_input(key, part).value for part in spec])
    if isinstance(spec, dict):
        return NetInput({name: _input(name, part).value for name, part in spec.items()})
    kind, *shape = spec if isinstance(spec[0], str) else ("floats", *spec)
    if kind == "value":
        return NetInput(shape[0])
    high = shape.pop(0) if kind == "int" else 16
    axes = _axes(key, kind, shape)
    if kind == "int":
        return integers(high, *shape, axes=axes)
    if kind == "ids":
        return NetInput(integers(high, *shape).value.float(), axes)
    if kind in ("ones", "mask"):
        mask = ones(*shape).value
        return NetInput(mask.bool() if kind == "mask" else mask, axes)
    return floats(*shape, axes=axes)


def _axes(key: str, kind: str, shape: Sequence[int]) -> tuple[str, ...]:
    """Return the meanings of an input's axes, by the conventions of the library."""
    text = "text" if key.startswith(("encoder", "txt", "text", "cap")) else "sequence"
    channels, last = str(shape[min(1, len(shape) - 1)]), str(shape[-1])
    if kind in ("ones", "mask"):
        if text == "sequence" and len(shape) > 3:
            return ("batch", "frames", "height", "width")
        return ("batch", *["1"] * (len(shape) - 2), text)
    if kind == "ids" or (kind == "bare" and len(shape) == 2):
        return (text, last)
    if kind == "audio":
        return ("batch", channels, "sequence")
    if kind == "video":
        return ("batch", "frames", str(shape[2]), "height", "width")
    if kind == "bare":
        return (str(shape[0]), "frames", "height", "width")
    last_axes = {
        1: (), 2: (last,), 3: (text, last), 4: (channels, "height", "width"),
        5: (channels, "frames", "height", "width"),
    }  # fmt: skip
    return ("frames" if kind == "frames" else "batch", *last_axes[len(shape)])
