"""asteroid: nets that separate and enhance sounds, small ones, with their choices of parts."""

from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchaudio
from passnet.data.capture.net import Net, floats

ADDS = "separation and enhancement of sounds: learnt filter banks, masks, dual paths, complex nets"
PACKAGES = ("asteroid", "asteroid-filterbanks")

SAMPLES, MICROPHONES = 8000, 4
TWO = {"n_src": 2}
TAS: dict[str, Any] = TWO | {"n_blocks": 3, "n_repeats": 1}
DUAL: dict[str, Any] = TWO | {"n_repeats": 2}
NORMS = ("cgLN", "gLN", "cLN", "bN")
MASKS = ("sigmoid", "relu", "softmax", "tanh")
BANKS: dict[str, dict[str, Any]] = {
    "stft": {"fb_name": "stft", "n_filters": 512, "kernel_size": 512, "stride": 256},
    "sinc": {"fb_name": "param_sinc", "n_filters": 512, "kernel_size": 251, "stride": 125},
    "analytic": {"fb_name": "analytic_free"},
}
_CELLS: dict[str, dict[str, Any]] = {
    "gru": {"rnn_type": "GRU"}, "one-way": {"bidirectional": False}, "mulcat": {"use_mulcat": True},
}  # fmt: skip
NETS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"conv-tasnet-{norm}": ("ConvTasNet", TAS | {"norm_type": norm}) for norm in NORMS},
    **{f"conv-tasnet-{mask}": ("ConvTasNet", TAS | {"mask_act": mask}) for mask in MASKS[1:]},
    **{f"conv-tasnet-{bank}": ("ConvTasNet", TAS | own) for bank, own in BANKS.items()},
    "conv-tasnet-causal": ("ConvTasNet", TAS | {"causal": True, "norm_type": "cLN"}),
    "conv-tasnet-no-skips": ("ConvTasNet", TAS | {"skip_chan": 0}),
    **{f"dprnn-{norm}": ("DPRNNTasNet", DUAL | {"norm_type": norm}) for norm in NORMS[1:]},
    **{f"dprnn-{cell}": ("DPRNNTasNet", DUAL | own) for cell, own in _CELLS.items()},
    **{f"dptnet-{norm}": ("DPTNet", DUAL | {"norm_type": norm}) for norm in NORMS},
    "dptnet-gelu": ("DPTNet", DUAL | {"ff_activation": "gelu"}),
    **{f"sudormrf-{mask}": ("SuDORMRFNet", TWO | {"num_blocks": 2, "mask_act": mask})
       for mask in MASKS},
    **{f"sudormrf-improved-{mask}": ("SuDORMRFImprovedNet", TWO | {"num_blocks": 2,
       "mask_act": mask}) for mask in MASKS},
    "lstm-tasnet": ("LSTMTasNet", TWO | {"n_layers": 2}),
    "lstm-tasnet-gru": ("LSTMTasNet", TWO | {"n_layers": 2, "rnn_type": "gru"}),
    **{f"demask-{kind}": ("DeMask", {"input_type": kind}) for kind in ("mag", "reim", "cat")},
    "demask-complex": ("DeMask", {"output_type": "reim"}),
    **{f"dcunet-{n}": ("DCUNet", {"architecture": f"DCUNet-{n}", "fix_length_mode": "pad"})
       for n in (10, 16, 20)},
    "fasnet": ("FasNetTAC", TWO | {"n_layers": 1}),
    "fasnet-gru": ("FasNetTAC", TWO | {"n_layers": 1, "rnn_type": "GRU", "use_tac": False}),
}  # fmt: skip

names = listed("asteroid.models", NETS, import_with_torchaudio)
"""Each net with its parts, one choice at a time."""


def build(name: str) -> Net:
    """Build a small net, for half a second of sound or of four microphones."""
    class_name, settings = row_of(NETS, name)
    net = getattr(import_with_torchaudio("asteroid.models"), class_name)(**settings)
    channels = MICROPHONES if class_name == "FasNetTAC" else 1
    sound = floats(1, channels, SAMPLES, axes=("batch", str(channels), "samples"), scale=0.1)
    return Net(net.eval(), (sound,), domain="audio", task="source-separation")
