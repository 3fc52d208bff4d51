"""torchaudio: nets that recognise, separate, assess and make speech."""

import importlib
from collections.abc import Callable
from typing import Any

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchaudio
from passnet.data.capture.net import Net, NetInput, floats, integers, tokens

ADDS = (
    "speech: recognition from samples and spectrograms, attention in segments with a memory, "
    "transducers, separation in time and frequency, vocoders, measures of quality"
)
PACKAGES = ("torchaudio",)

BATCH, FRAMES, MELS, SAMPLES, SYMBOLS = 2, 128, 80, 16000, 29
SpeechFactory = Callable[[Any], Any]

ENCODERS = (
    "wav2vec2_base", "wav2vec2_large", "wav2vec2_large_lv60k", "wav2vec2_xlsr_300m", "hubert_base",
    "hubert_large", "wavlm_base", "wavlm_large",
)  # fmt: skip
"""Nets that read samples, by their factories; with a head for letters they spell."""

SPELLING = "-letters"
LAYERS = 4

OTHERS: dict[str, tuple[SpeechFactory, str, str]] = {
    "conformer": (lambda m: m.Conformer(MELS, 4, 256, 4, 31), "frames", "speech-recognition"),
    "conformer-group-norm": (lambda m: m.Conformer(MELS, 4, 256, 4, 31, use_group_norm=True),
                             "frames", "speech-recognition"),
    "conformer-convolution-first": (lambda m: m.Conformer(MELS, 4, 256, 4, 31,
                                    convolution_first=True), "frames", "speech-recognition"),
    "emformer": (lambda m: m.Emformer(MELS, 4, 256, 4, 16, right_context_length=4),
                 "frames", "speech-recognition"),
    "emformer-memory": (lambda m: m.Emformer(MELS, 4, 256, 4, 16, right_context_length=4,
                        max_memory_size=4), "frames", "speech-recognition"),
    "emformer-left-context": (lambda m: m.Emformer(MELS, 4, 256, 4, 16, left_context_length=8,
                              activation="gelu"), "frames", "speech-recognition"),
    "conv-tasnet": (lambda m: m.conv_tasnet_base(), "one channel", "source-separation"),
    "conv-tasnet-relu": (lambda m: m.ConvTasNet(msk_activate="relu"), "one channel",
                         "source-separation"),
    "deepspeech": (lambda m: m.DeepSpeech(MELS), "frames of a channel", "speech-recognition"),
    "wav2letter-samples": (lambda m: m.Wav2Letter(), "one channel", "speech-recognition"),
    "wav2letter-power": (lambda m: m.Wav2Letter(input_type="power_spectrum", num_features=MELS),
                         "mels", "speech-recognition"),
    "wav2letter-mfcc": (lambda m: m.Wav2Letter(input_type="mfcc", num_features=MELS), "mels",
                        "speech-recognition"),
    "squim-objective": (lambda m: m.squim_objective_base(), "samples", "quality-assessment"),
    "hdemucs-low": (lambda m: m.hdemucs_low(["voice", "rest"]), "stereo", "source-separation"),
    "hdemucs-medium": (lambda m: m.hdemucs_medium(["voice", "rest"]), "stereo",
                       "source-separation"),
    "rnnt-emformer": (lambda m: m.emformer_rnnt_base(SYMBOLS), "transducer", "speech-recognition"),
    "tacotron2": (lambda m: m.Tacotron2(n_symbol=SYMBOLS), "teacher", "text-to-speech"),
    "wavernn": (lambda m: m.WaveRNN([4, 4, 8], 256, 128, n_freq=MELS), "vocoder",
                "text-to-speech"),
}  # fmt: skip
"""Other nets: factory, inputs, and task."""

names = listed(
    "torchaudio.models",
    [*(encoder + end for encoder in ENCODERS for end in ("", SPELLING)), *OTHERS],
    import_with_torchaudio,
)


def build(name: str) -> Net:
    """Build a net with the library's sizes, encoders with four layers, on a second of sound."""
    models = import_with_torchaudio("torchaudio.models")
    plain = name.removesuffix(SPELLING)
    if plain in ENCODERS:
        net = getattr(models, plain)(aux_num_out=SYMBOLS if plain != name else None)
        stack = net.encoder.transformer.layers
        changes = (f"layers {len(stack)} -> {LAYERS}",)
        del stack[LAYERS:]
        task = "speech-recognition" if plain != name else "feature-extraction"
        return Net(net.eval(), (_sound(),), domain="audio", task=task, changes=changes)
    make, inputs, task = row_of(OTHERS, name)
    return Net(make(models).eval(), _inputs(inputs), domain="audio", task=task)


def _sound(*channels: int, samples: int = SAMPLES) -> NetInput:
    axes = ("batch", *map(str, channels), "samples")
    return floats(BATCH, *channels, samples, axes=axes, scale=0.1)


def _lengths(length: int) -> NetInput:
    torch: Any = importlib.import_module("torch")
    return NetInput(torch.full((BATCH,), length, dtype=torch.int32), ("batch",))


def _inputs(kind: str) -> tuple[NetInput, ...]:
    frames = floats(BATCH, FRAMES, MELS, axes=("batch", "frames", str(MELS)))
    mels = floats(BATCH, MELS, FRAMES, axes=("batch", str(MELS), "frames"))
    if kind == "transducer":
        padded = floats(BATCH, FRAMES + 4, MELS, axes=("batch", "frames", str(MELS)))
        words = NetInput(tokens(SYMBOLS, BATCH, 16).value.int(), ("batch", "sequence"))
        return padded, _lengths(FRAMES), words, _lengths(16)
    if kind == "teacher":
        text = integers(SYMBOLS, BATCH, 32, axes=("batch", "sequence"))
        short = floats(BATCH, MELS, 16, axes=("batch", str(MELS), "frames"))
        return text, _lengths(32), short, _lengths(16)
    if kind == "vocoder":
        wave = floats(BATCH, 1, 128 * 12, axes=("batch", "1", "samples"), scale=0.1)
        return wave, floats(BATCH, 1, MELS, 16, axes=("batch", "1", str(MELS), "frames"))
    plain = {
        "frames": (frames, _lengths(FRAMES)),
        "frames of a channel": (
            floats(BATCH, 1, FRAMES, MELS, axes=("batch", "1", "frames", str(MELS))),
        ),
        "mels": (mels,),
        "one channel": (_sound(1),),
        "stereo": (_sound(2),),
        "samples": (_sound(),),
    }
    return plain[kind]
