"""monai: nets for medical volumes and slices."""

from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, NetInput, floats, image, integers

ADDS = "3D convolutions, instance norms and volume transformers of medical imaging"
PACKAGES = ("monai", "torchvision")

SIDE_3D, SIDE_2D = 64, 224
VOLUME = (SIDE_3D, SIDE_3D, SIDE_3D)

D3, D2 = {"spatial_dims": 3}, {"spatial_dims": 2}
IO = {"in_channels": 1, "out_channels": 3}
IN_3D, IN_2D = IO | D3, IO | D2
SAME = {"in_channels": 1, "out_channels": 1}
UNET = {"channels": (16, 32, 64, 128, 256), "strides": (2, 2, 2, 2)}
STACK = {"channels": (16, 32, 64), "strides": (2, 2, 2)}
DYN = {
    "kernel_size": (3, 3, 3, 3, 3), "strides": (1, 2, 2, 2, 2),
    "upsample_kernel_size": (2, 2, 2, 2), "norm_name": "instance",
}  # fmt: skip
KL = SAME | {
    "num_res_blocks": 1, "channels": (32, 64, 64), "attention_levels": (False, False, True),
    "latent_channels": 4, "norm_num_groups": 16,
}  # fmt: skip
DIFFUSION = SAME | {
    "channels": (32, 64, 64), "attention_levels": (False, True, True), "num_res_blocks": 1,
    "num_head_channels": 32, "norm_num_groups": 16,
}  # fmt: skip
VQ = SAME | {
    "channels": (64, 128), "num_res_channels": 64, "num_res_layers": 2,
    "downsample_parameters": ((2, 4, 1, 1), (2, 4, 1, 1)),
    "upsample_parameters": ((2, 4, 1, 1, 0), (2, 4, 1, 1, 0)), "num_embeddings": 256,
    "embedding_dim": 32,
}  # fmt: skip
UNETR = IO | {"img_size": VOLUME}
CLASSES = {"in_channels": 1, "out_channels": 5}
NUM_CLASSES = {"in_channels": 1, "num_classes": 5}
EFFICIENT = NUM_CLASSES | {"pretrained": False}
RESNET = D3 | {"n_input_channels": 1, "num_classes": 5}
VIT = {"in_channels": 1, "img_size": VOLUME, "patch_size": (16, 16, 16)}
PAIR = D3 | {"in_channels": 2, "num_channel_initial": 16}

SEGMENT, CLASSIFY = "image-segmentation", "image-classification"
REBUILD, REGISTER, DENOISE = "image-reconstruction", "image-registration", "image-denoising"

NETS: dict[str, tuple[str, dict[str, Any], str]] = {
    "unet-3d": ("UNet", IN_3D | UNET, SEGMENT),
    "unet-2d": ("UNet", IN_2D | UNET, SEGMENT),
    "unet-residual-3d": ("UNet", IN_3D | UNET | {"num_res_units": 2}, SEGMENT),
    "unet-batch-3d": ("UNet", IN_3D | UNET | {"num_res_units": 2, "norm": "batch"}, SEGMENT),
    "attention-unet-3d": ("AttentionUnet", IN_3D | UNET, SEGMENT),
    "attention-unet-2d": ("AttentionUnet", IN_2D | UNET, SEGMENT),
    "basic-unet-3d": ("BasicUNet", IN_3D, SEGMENT),
    "basic-unet-2d": ("BasicUNet", IN_2D, SEGMENT),
    "basic-unet-plus-plus-3d": ("BasicUNetPlusPlus", IN_3D, SEGMENT),
    "basic-unet-plus-plus-2d": ("BasicUNetPlusPlus", IN_2D, SEGMENT),
    "dynunet-3d": ("DynUNet", IN_3D | DYN, SEGMENT),
    "dynunet-2d": ("DynUNet", IN_2D | DYN | {"res_block": True}, SEGMENT),
    "dynunet-residual-3d": ("DynUNet", IN_3D | DYN | {"res_block": True}, SEGMENT),
    "flexible-unet-2d": ("FlexibleUNet", IN_2D | {"backbone": "efficientnet-b0"}, SEGMENT),
    "flexible-unet-resnet-3d": ("FlexibleUNet", IN_3D | {"backbone": "resnet18"}, SEGMENT),
    "segresnet-3d": ("SegResNet", IN_3D | {"init_filters": 16}, SEGMENT),
    "segresnet-2d": ("SegResNet", IN_2D | {"init_filters": 32}, SEGMENT),
    "segresnet-trilinear-3d": ("SegResNet", IN_3D | {"upsample_mode": "deconv", "num_groups": 4},
                               SEGMENT),
    "segresnet-ds-3d": ("SegResNetDS", IN_3D | {"dsdepth": 2}, SEGMENT),
    "segresnet-ds-instance-3d": ("SegResNetDS", IN_3D | {"norm": "instance"}, SEGMENT),
    "segresnet-vae-3d": ("SegResNetVAE", IN_3D | {"input_image_size": VOLUME}, SEGMENT),
    "vnet-3d": ("VNet", IN_3D, SEGMENT),
    "vnet-2d": ("VNet", IN_2D, SEGMENT),
    "highresnet-3d": ("HighResNet", IN_3D, SEGMENT),
    "ahnet-3d": ("AHNet", IN_3D | {"psp_block_num": 3, "upsample_mode": "trilinear"}, SEGMENT),
    "ahnet-2d": ("AHNet", IN_2D | {"psp_block_num": 3, "upsample_mode": "bilinear"}, SEGMENT),
    "unetr-3d": ("UNETR", UNETR, SEGMENT),
    "unetr-2d": ("UNETR", IN_2D | {"img_size": SIDE_2D}, SEGMENT),
    "unetr-perceptron-3d": ("UNETR", UNETR | {"proj_type": "perceptron", "norm_name": "batch"},
                            SEGMENT),
    "swin-unetr-3d": ("SwinUNETR", IO | {"feature_size": 24}, SEGMENT),
    "swin-unetr-2d": ("SwinUNETR", IN_2D | {"feature_size": 24}, SEGMENT),
    "swin-unetr-v2-3d": ("SwinUNETR", IO | {"feature_size": 24, "use_v2": True}, SEGMENT),
    "mednext-small-3d": ("MedNeXtS", IN_3D, SEGMENT),
    "mednext-base-3d": ("MedNeXtB", IN_3D, SEGMENT),
    "mednext-medium-2d": ("MedNeXtM", IN_2D, SEGMENT),
    "mednext-grn-3d": ("MedNeXt", IN_3D | {"global_resp_norm": True, "kernel_size": 5}, SEGMENT),
    "daf3d": ("DAF3D", IO, SEGMENT),
    "hovernet": ("HoVerNet", {"mode": "fast", "in_channels": 1, "out_classes": 5}, SEGMENT),
    "quicknat": ("Quicknat", {"num_classes": 3, "se_block": "CSE"}, SEGMENT),
    "masked-autoencoder-vit-2d": ("MaskedAutoEncoderViT", D2 | {"in_channels": 1,
        "img_size": SIDE_2D, "patch_size": 16, "hidden_size": 384, "num_layers": 6,
        "num_heads": 6, "mlp_dim": 768, "decoder_hidden_size": 192, "decoder_num_layers": 2,
        "decoder_num_heads": 6, "decoder_mlp_dim": 384}, REBUILD),
    "vit-3d": ("ViT", VIT | {"classification": True, "num_classes": 5}, CLASSIFY),
    "vit-2d": ("ViT", D2 | {"in_channels": 1, "img_size": (224, 224), "patch_size": (16, 16),
        "classification": True, "proj_type": "perceptron"}, CLASSIFY),
    "vit-autoencoder-3d": ("ViTAutoEnc", VIT | {"num_layers": 6}, REBUILD),
    "densenet121-3d": ("DenseNet121", CLASSES | D3, CLASSIFY),
    "densenet169-2d": ("DenseNet169", CLASSES | D2, CLASSIFY),
    "densenet264-3d": ("DenseNet264", CLASSES | D3, CLASSIFY),
    "efficientnet-b0-3d": ("EfficientNetBN", EFFICIENT | D3 | {"model_name": "efficientnet-b0"},
                           CLASSIFY),
    "efficientnet-b2-2d": ("EfficientNetBN", EFFICIENT | D2 | {"model_name": "efficientnet-b2"},
                           CLASSIFY),
    "resnet18-3d": ("resnet18", RESNET, CLASSIFY),
    "resnet50-3d": ("resnet50", RESNET, CLASSIFY),
    "resnet50-b-3d": ("resnet50", RESNET | {"shortcut_type": "A"}, CLASSIFY),
    "senet154-3d": ("SENet154", NUM_CLASSES | D3, CLASSIFY),
    "seresnet50-3d": ("SEResNet50", NUM_CLASSES | D3, CLASSIFY),
    "seresnext50-2d": ("SEResNext50", NUM_CLASSES | D2, CLASSIFY),
    "torchvision-fc-2d": ("TorchVisionFCModel", {"model_name": "resnet18", "num_classes": 5},
                          CLASSIFY),
    "classifier-3d": ("Classifier", STACK | {"in_shape": (1, *VOLUME), "classes": 5}, CLASSIFY),
    "regressor-3d": ("Regressor", STACK | {"in_shape": (1, *VOLUME), "out_shape": (3,)},
                     "image-regression"),
    "discriminator-3d": ("Discriminator", STACK | {"in_shape": (1, *VOLUME)}, CLASSIFY),
    "patch-discriminator-3d": ("PatchDiscriminator", SAME | D3 | {"channels": 32}, CLASSIFY),
    "autoencoder-3d": ("AutoEncoder", IN_3D | STACK, REBUILD),
    "autoencoder-vae-3d": ("VarAutoEncoder", D3 | STACK | {"in_shape": (1, *VOLUME),
        "out_channels": 1, "latent_size": 64}, REBUILD),
    "autoencoder-kl-3d": ("AutoencoderKL", KL | D3, REBUILD),
    "autoencoder-kl-2d": ("AutoencoderKL", KL | D2, REBUILD),
    "vqvae-3d": ("VQVAE", VQ | D3, REBUILD),
    "vqvae-2d": ("VQVAE", VQ | D2, REBUILD),
    "diffusion-unet-3d": ("DiffusionModelUNet", DIFFUSION | D3, DENOISE),
    "diffusion-unet-2d": ("DiffusionModelUNet", DIFFUSION | D2, DENOISE),
    "diffusion-unet-conditioned-2d": ("DiffusionModelUNet", DIFFUSION | D2 | {
        "with_conditioning": True, "cross_attention_dim": 64}, DENOISE),
    "voxelmorph-unet-3d": ("VoxelMorphUNet", D3 | {"in_channels": 2, "unet_out_channels": 32,
        "channels": (16, 32, 32, 32, 32, 32), "final_conv_channels": (16, 16)}, REGISTER),
    "voxelmorph-3d": ("VoxelMorph", {}, REGISTER),
    "localnet-3d": ("LocalNet", PAIR | {"out_channels": 3, "extract_levels": (0, 1, 2, 3)},
                    REGISTER),
    "regunet-3d": ("RegUNet", PAIR | {"out_channels": 3, "depth": 3}, REGISTER),
    "globalnet-3d": ("GlobalNet", PAIR | {"image_size": [*VOLUME], "depth": 3}, REGISTER),
    "token-decoder": ("DecoderOnlyTransformer", {"num_tokens": 256, "max_seq_len": 512,
        "attn_layers_dim": 256, "attn_layers_depth": 4, "attn_layers_heads": 8},
        "image-generation"),
}  # fmt: skip
"""Entry -> class, constructor arguments, and task. A name that ends in 2d takes a slice."""

SLICES = ("hovernet", "quicknat")
CHANNELS = {"torchvision-fc-2d": 3, "voxelmorph-unet-3d": 2}

names = listed("monai", NETS)


def build(name: str) -> Net:
    """Build a net on one volume or slice."""
    class_name, options, task = row_of(NETS, name)
    net = getattr(import_with_torchvision("monai.networks.nets"), class_name)(**options).eval()
    channels = CHANNELS.get(name, 2 if task == REGISTER else 1)
    args: tuple[NetInput, ...] = (_picture(name, channels),)
    if name == "voxelmorph-3d":
        args = (_picture(name, 1), _picture(name, 1))
    elif class_name == "DecoderOnlyTransformer":
        args = (integers(256, 1, 256, axes=("batch", "sequence")),)
    elif class_name == "DiffusionModelUNet":
        args += (integers(1000, 1, axes=("batch",)),)
    if "cross_attention_dim" in options:
        context = floats(1, 8, options["cross_attention_dim"], axes=("batch", "context", "64"))
        args += (context,)
    return Net(net, args, domain="cv", task=task)


def _picture(name: str, channels: int) -> NetInput:
    if name.endswith("2d") or name in SLICES:
        side = 256 if name in SLICES else SIDE_2D
        return image(1, channels, side, side)
    axes = ("batch", str(channels), "depth", "height", "width")
    return floats(1, channels, SIDE_3D, SIDE_3D, SIDE_3D, axes=axes)
