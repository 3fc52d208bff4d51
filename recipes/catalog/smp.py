"""segmentation_models_pytorch: every decoder on encoders of each family."""

from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net, image

ADDS = "decoders for segmentation: skips, upsampling, pyramids, dilated and attention heads"
PACKAGES = ("segmentation-models-pytorch", "timm", "torchvision")

NUM_CLASSES = 21
SIZE = 256

DECODERS = {
    "unet": "Unet", "unetplusplus": "UnetPlusPlus", "manet": "MAnet", "linknet": "Linknet",
    "fpn": "FPN", "pspnet": "PSPNet", "deeplabv3": "DeepLabV3", "deeplabv3plus": "DeepLabV3Plus",
    "pan": "PAN", "upernet": "UPerNet", "segformer": "Segformer",
}  # fmt: skip
ENCODERS = (
    "resnet18", "resnet50", "resnext50_32x4d", "se_resnet50", "senet154", "dpn68", "vgg16_bn",
    "densenet121", "inceptionresnetv2", "inceptionv4", "xception", "efficientnet-b0",
    "efficientnet-b3", "mobilenet_v2", "mobileone_s0", "mobileone_s4", "mit_b0", "mit_b2",
    "timm-efficientnet-b1", "timm-tf_efficientnet_lite0", "timm-skresnet34", "tu-resnest14d",
    "tu-res2net50_26w_4s", "tu-regnety_008", "tu-mobilenetv3_large_100", "tu-convnext_tiny",
    "tu-hrnet_w18_small", "tu-ghostnet_100", "tu-efficientvit_b1",
    "tu-swin_tiny_patch4_window7_224",
)  # fmt: skip
VITS = (
    "tu-vit_tiny_patch16_224", "tu-vit_base_patch16_224", "tu-vit_small_patch32_224",
    "tu-deit_small_patch16_224", "tu-deit3_small_patch16_224", "tu-beit_base_patch16_224",
)  # fmt: skip
"""Encoders of the dpt decoder, which takes nothing else."""

UNDILATED = (
    "vgg16_bn", "densenet121", "inceptionresnetv2", "inceptionv4", "xception",
    "tu-hrnet_w18_small", "tu-ghostnet_100", "tu-efficientvit_b1",
    "tu-swin_tiny_patch4_window7_224",
)  # fmt: skip
"""Encoders that cannot trade strides for dilation."""

UNFIT = {  # the first have no feature map at half of the image's size
    **dict.fromkeys(("unetplusplus", "linknet"), ("mit_b0", "mit_b2")),
    **dict.fromkeys(("deeplabv3", "deeplabv3plus", "pan"), UNDILATED),
}
"""Encoders that a decoder refuses."""


def names() -> list[str]:
    """Return every decoder with every encoder that it accepts, as `decoder-encoder`."""
    import_with_torchvision("segmentation_models_pytorch")
    pairs = [
        f"{decoder}-{encoder}"
        for decoder in DECODERS
        for encoder in ENCODERS
        if encoder not in UNFIT.get(decoder, ())
    ]
    return pairs + [f"dpt-{encoder}" for encoder in VITS]


def build(name: str) -> Net:
    """Build a net that scores classes for each pixel of one image."""
    smp = import_with_torchvision("segmentation_models_pytorch")
    decoder, encoder = name.split("-", 1)
    size = 224 if encoder.endswith("_224") else SIZE
    net_class = smp.DPT if decoder == "dpt" else getattr(smp, DECODERS[decoder])
    net = net_class(encoder, encoder_weights=None, classes=NUM_CLASSES).eval()
    return Net(net, (image(1, 3, size, size),), domain="cv", task="semantic-segmentation")
