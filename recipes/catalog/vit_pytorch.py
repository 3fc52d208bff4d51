"""vit_pytorch: variants of vision transformers from papers, with the sizes of their examples."""

from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, NetInput, floats, image

ADDS = "attention for images as papers rewrote it: windows, pooling, memories, convolutions, 1D-3D"
PACKAGES = ("vit-pytorch", "x-transformers", "torchvision")

CLASSES = {"num_classes": 1000}
PATCHED = CLASSES | {"image_size": 224, "patch_size": 16, "dim": 512}
LAYERS = CLASSES | {"dim": 512, "heads": 8, "mlp_dim": 1024}
VIT = PATCHED | LAYERS | {"depth": 6}
SERIES = LAYERS | {"depth": 6, "patch_size": 16, "seq_len": 256}
CLIP = LAYERS | {"image_size": 128, "image_patch_size": 16, "frames": 16, "frame_patch_size": 2}
VIDEO = CLIP | {"depth": 6}
VIVIT = CLIP | {"spatial_depth": 4, "temporal_depth": 4}
GRID = LAYERS | {"depth": 6, "ndim": 3, "input_shape": (8, 64, 64), "patch_size": (2, 8, 8)}
MAX = CLASSES | {"dim": 64, "depth": (2, 2, 2, 2), "dim_conv_stem": 64}
CCT = CLASSES | {"img_size": 224, "kernel_size": 7, "stride": 2, "padding": 3}

NETS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit:ViT", VIT),
    "vit-mean-pool": ("vit:ViT", VIT | {"pool": "mean"}),
    "vit-1d": ("vit_1d:ViT", SERIES),
    "vit-3d": ("vit_3d:ViT", VIDEO),
    "vit-5": ("vit_5:ViT", VIT),
    "vit-detpool": ("vit_detpool:ViTDetPool", VIT),
    "vit-small-dataset": ("vit_for_small_dataset:ViT", VIT),
    "vit-nd": ("vit_nd:ViTND", GRID),
    "vit-nd-rotary": ("vit_nd_rotary:ViTND", GRID),
    "vit-nd-pope": ("vit_nd_pope:ViTND", GRID),
    "vit-decorr": ("vit_with_decorr:ViT", VIT),
    "vit-keel-post-norm": ("vit_with_keel_post_ln:ViT", VIT),
    "vit-patch-dropout": ("vit_with_patch_dropout:ViT", VIT),
    "vit-patch-merger": ("vit_with_patch_merger:ViT", VIT | {"patch_merge_layer": 3}),
    "vivit": ("vivit:ViViT", VIVIT),
    "vivit-self-attention": ("vivit:ViViT", VIVIT | {"variant": "factorized_self_attention"}),
    "vivit-moss": ("vivit_with_moss:ViViT", VIVIT),
    "simple-vit": ("simple_vit:SimpleViT", VIT),
    "simple-vit-1d": ("simple_vit_1d:SimpleViT", SERIES),
    "simple-vit-3d": ("simple_vit_3d:SimpleViT", VIDEO),
    "simple-uvit": ("simple_uvit:SimpleUViT", VIT),
    "simple-flash": ("simple_flash_attn_vit:SimpleViT", VIT),
    "simple-flash-3d": ("simple_flash_attn_vit_3d:SimpleViT", VIDEO),
    "simple-attn-residual": ("simple_vit_attn_residual:SimpleViTAttnResidual", VIT),
    "simple-orthogonal-residual": ("simple_vit_orthog_residual_update:SimpleViT", VIT),
    "simple-fft": ("simple_vit_with_fft:SimpleViT", VIT | {"freq_patch_size": 8}),
    "simple-hyper-connections": ("simple_vit_with_hyper_connections:SimpleViT",
                                 VIT | {"num_residual_streams": 4}),
    "simple-patch-dropout": ("simple_vit_with_patch_dropout:SimpleViT", VIT),
    "simple-qk-norm": ("simple_vit_with_qk_norm:SimpleViT", VIT),
    "simple-registers": ("simple_vit_with_register_tokens:SimpleViT", VIT),
    "simple-relative-bias": ("simple_vit_with_relative_proj_pos_bias:SimpleViT", VIT),
    "simple-sparse-gating": ("simple_vit_with_sparse_gating:SimpleViTWithSparseGating", VIT),
    "simple-specialized-cls": ("simple_vit_with_specialized_cls:SimpleViT", VIT),
    "simple-value-residual": ("simple_vit_with_value_residual:SimpleViT", VIT),
    "attn-residual-dca": ("attn_residual_with_dca_simple_vit:SimpleViT", VIT),
    "ats": ("ats_vit:ViT", VIT | {"max_tokens_per_depth": (256, 128, 64, 32, 16, 8)}),
    "cait": ("cait:CaiT", VIT | {"cls_depth": 2}),
    "cct": ("cct:CCT", CCT | {"embedding_dim": 384, "num_layers": 7, "num_heads": 6,
            "n_conv_layers": 2}),
    "cct-sine": ("cct:CCT", CCT | {"embedding_dim": 256, "num_layers": 4, "num_heads": 4,
                 "n_conv_layers": 1, "positional_embedding": "sine"}),
    "cct-3d": ("cct_3d:CCT", CCT | {"num_frames": 8, "embedding_dim": 384, "n_conv_layers": 2,
               "frame_kernel_size": 3, "num_layers": 7, "num_heads": 6, "mlp_ratio": 3.0}),
    "cross-vit": ("cross_vit:CrossViT", CLASSES | {"image_size": 256, "sm_dim": 192,
                  "lg_dim": 384, "sm_patch_size": 16, "lg_patch_size": 64}),
    "crossformer": ("crossformer:CrossFormer", CLASSES),
    "cvt": ("cvt:CvT", CLASSES),
    "deepvit": ("deepvit:DeepViT", VIT),
    "efficient-x-transformer": ("efficient:ViT", PATCHED),
    "jet-full-linear": ("jet_vit:JetViT", VIT | {"attn_layers": ["LA", "FA", "WA"] * 2}),
    "jumbo": ("jumbo_vit:JumboViT", VIT),
    "learnable-memory": ("learnable_memory_vit:ViT", VIT),
    "levit": ("levit:LeViT", CLASSES | {"image_size": 224, "dim": (256, 384, 512), "depth": 4,
              "heads": (4, 6, 8), "mlp_mult": 2, "stages": 3}),
    "look": ("look_vit:LookViT", CLASSES | {"image_size": 256, "dim": 512, "depth": 2,
             "highres_patch_size": 8}),
    "looped": ("looped_vit:LoopedViT", PATCHED | {"pre_loop_depth": 1, "num_looped_blocks": 2,
               "post_loop_depth": 1}),
    "max": ("max_vit:MaxViT", MAX),
    "max-registers": ("max_vit_with_registers:MaxViT", MAX),
    "mobile": ("mobile_vit:MobileViT", CLASSES | {"image_size": (256, 256), "dims": [96, 120, 144],
               "channels": [16, 32, 48, 48, 64, 64, 80, 80, 96, 96, 384]}),
    "na": ("na_vit:NaViT", VIT),
    "na-nested": ("na_vit_nested_tensor:NaViT", VIT),
    "nest": ("nest:NesT", CLASSES | {"image_size": 224, "patch_size": 4, "dim": 96, "heads": 3,
             "num_hierarchies": 3, "block_repeats": (2, 2, 8)}),
    "normalized": ("normalized_vit:nViT", VIT),
    "parallel": ("parallel_vit:ViT", VIT),
    "pit": ("pit:PiT", VIT | {"depth": (2, 2, 2), "patch_size": 14, "dim": 256}),
    "regionvit": ("regionvit:RegionViT", CLASSES),
    "regionvit-peg": ("regionvit:RegionViT", CLASSES | {"use_peg": True,
                      "tokenize_local_3_conv": True, "depth": (1, 1, 2, 1)}),
    "rvt": ("rvt:RvT", VIT),
    "scalable": ("scalable_vit:ScalableViT", CLASSES | {"dim": 64, "heads": (2, 4, 8, 16),
                 "depth": (2, 2, 4, 2), "ssa_dim_key": (40, 40, 40, 32),
                 "reduction_factor": (8, 4, 2, 1), "window_size": (64, 32, None, None)}),
    "sep": ("sep_vit:SepViT", CLASSES | {"dim": 32, "dim_head": 32, "heads": (1, 2, 4, 8),
            "depth": (1, 2, 6, 2), "window_size": 7}),
    "t2t": ("t2t:T2TViT", CLASSES | {"dim": 512, "image_size": 224, "depth": 5, "heads": 8,
            "mlp_dim": 512}),
    "twins-svt": ("twins_svt:TwinsSVT", CLASSES),
    "wwt": ("wwt:WWT", PATCHED | {"depth": 6, "num_slots": 16}),
    "xcit": ("xcit:XCiT", VIT | {"cls_depth": 2, "local_patch_kernel_size": 3}),
}  # fmt: skip
"""Entry -> module and class, and constructor arguments."""

SIZE = 224
SIZES = {"scalable": 256}

names = listed("vit_pytorch", NETS)


def build(name: str) -> Net:
    """Build a classifier of one image, clip or series."""
    path, options = row_of(NETS, name)
    module, class_name = path.split(":")
    library = import_with_torchvision(f"vit_pytorch.{module}")
    if module == "efficient":
        from x_transformers import Encoder

        options = options | {"transformer": Encoder(dim=512, depth=6, ff_glu=True)}
    net = getattr(library, class_name)(**options).eval()
    argument, task = _input(name, options)
    return Net(net, (argument,), domain="other" if "seq_len" in options else "cv", task=task)


def _input(name: str, options: dict[str, Any]) -> tuple[NetInput, str]:
    size = options.get("image_size", options.get("img_size", SIZES.get(name, SIZE)))
    if "seq_len" in options:
        length = options["seq_len"]
        return floats(1, 3, length, axes=("batch", "3", "sequence")), "time-series-classification"
    frames = options.get("frames", options.get("num_frames"))
    if "input_shape" in options:
        frames, size, _ = options["input_shape"]
    if frames:
        axes = ("batch", "3", "frames", "height", "width")
        return floats(1, 3, frames, size, size, axes=axes), "video-classification"
    picture = image(1, 3, *(size if isinstance(size, tuple) else (size, size)))
    if name.startswith("na"):
        picture = NetInput([picture.value[0], picture.value[0, :, :, :128]])
    return picture, "image-classification"
