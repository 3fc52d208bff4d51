"""speechbrain: nets that recognise speech and speakers, clean up, separate and make speech."""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchaudio
from passnet.data.capture.net import Net, NetInput, floats, integers, tokens

ADDS = (
    "speech: nets of convolutions, recurrence and attention by turns, statistics over time that "
    "tell speakers, two paths over chunks, adversarial vocoders, speech from text"
)
PACKAGES = ("speechbrain", "torchaudio")

BATCH, FRAMES, MELS, SAMPLES, WORDS, WIDTH = 2, 128, 80, 16000, 1000, 144
LobeFactory = Callable[[Callable[[str], Any]], Any]
"""From an importer of the library's modules to a net."""


def _asr(m: Callable[[str], Any], **settings: Any) -> Any:
    shape: dict[str, Any] = {"normalize_before": settings.get("encoder_module") == "conformer"}
    shape |= {"d_model": WIDTH, "nhead": 4, "num_encoder_layers": 3, "num_decoder_layers": 2,
             "d_ffn": 512}  # fmt: skip
    return m("transformer.TransformerASR").TransformerASR(WORDS, MELS, **(shape | settings))


def _sepformer(m: Callable[[str], Any], **settings: Any) -> Any:
    shape = {"intra_numlayers": 2, "inter_numlayers": 2, "encoder_out_nchannels": 64,
             "intra_dffn": 256, "inter_dffn": 256}  # fmt: skip
    return m("dual_path").SepformerWrapper(**(shape | settings))


def _hifigan(m: Callable[[str], Any], block: str, **settings: Any) -> Any:
    return m("HifiGAN").HifiganGenerator(
        MELS, 1, block, [[1, 3, 5], [1, 3, 5], [1, 3, 5]] if block == "1" else [[1, 3]] * 3,
        [3, 7, 11], [16, 16, 4, 4], 128, [8, 8, 2, 2], **settings,
    )  # fmt: skip


def _dual_path(m: Callable[[str], Any], kind: str) -> Any:
    dual = m("dual_path")
    blocks = {
        "rnn": lambda: dual.SBRNNBlock(64, 128, 1, bidirectional=True),
        "transformer": lambda: dual.SBTransformerBlock(2, 64, 4, 256),
        "conformer": lambda: dual.SBConformerEncoderBlock(1, 64, 4, 256),
        "dptnet": lambda: dual.DPTNetBlock(64, 4),
        "pytorch": lambda: dual.PytorchTransformerBlock(64, 1, 4, 256),
    }
    make = blocks[kind]
    return dual.Dual_Path_Model(64, 64, make(), make(), num_layers=2, K=100)


NETS: dict[str, tuple[LobeFactory, str, str]] = {
    "crdnn": (lambda m: m("CRDNN").CRDNN(input_shape=[None, None, MELS]), "frames",
              "speech-recognition"),
    "crdnn-projected": (lambda m: m("CRDNN").CRDNN(input_shape=[None, None, MELS],
                        projection_dim=128, using_2d_pooling=True), "frames",
                        "speech-recognition"),
    "contextnet": (lambda m: m("ContextNet").ContextNet([None, None, MELS], num_layers=2),
                   "frames", "speech-recognition"),
    "cnn14": (lambda m: m("Cnn14").Cnn14(MELS, 512), "frames", "audio-classification"),
    "cnn14-layer-norm": (lambda m: m("Cnn14").Cnn14(MELS, 512, norm_type="ln"), "frames",
                         "audio-classification"),
    "ecapa-tdnn": (lambda m: m("ECAPA_TDNN").ECAPA_TDNN(MELS), "frames", "speaker-recognition"),
    "ecapa-tdnn-small": (lambda m: m("ECAPA_TDNN").ECAPA_TDNN(
        MELS, channels=[256] * 4 + [768], global_context=False), "frames", "speaker-recognition"),
    "xvector": (lambda m: m("Xvector").Xvector(in_channels=MELS), "frames", "speaker-recognition"),
    "resnet": (lambda m: m("ResNet").ResNet(MELS), "frames", "speaker-recognition"),
    "transformer": (lambda m: _asr(m), "speech and text", "speech-recognition"),
    "transformer-norm-first": (lambda m: _asr(m, normalize_before=True), "speech and text",
                               "speech-recognition"),
    "transformer-causal": (lambda m: _asr(m, causal=True), "speech and text",
                           "speech-recognition"),
    "conformer": (lambda m: _asr(m, encoder_module="conformer", attention_type="RelPosMHAXL"),
                  "speech and text", "speech-recognition"),
    "conformer-rope": (lambda m: _asr(m, encoder_module="conformer", attention_type="RoPEMHA"),
                       "speech and text", "speech-recognition"),
    "conformer-plain": (lambda m: _asr(m, encoder_module="conformer"), "speech and text",
                        "speech-recognition"),
    "conformer-hypermixing": (lambda m: _asr(m, encoder_module="conformer",
        attention_type="hypermixing", num_decoder_layers=0), "speech", "speech-recognition"),
    "branchformer": (lambda m: _asr(m, encoder_module="branchformer",
                     attention_type="RelPosMHAXL"), "speech and text", "speech-recognition"),
    "branchformer-plain": (lambda m: _asr(m, encoder_module="branchformer"), "speech and text",
                           "speech-recognition"),
    "transformer-lm": (lambda m: m("transformer.TransformerLM").TransformerLM(
        WORDS, d_model=256, num_encoder_layers=4, nhead=4), "text", "text-generation"),
    "transformer-lm-decoder": (lambda m: m("transformer.TransformerLM").TransformerLM(
        WORDS, d_model=256, num_encoder_layers=2, num_decoder_layers=2, nhead=4), "text",
        "text-generation"),
    "rnn-lm": (lambda m: m("RNNLM").RNNLM(WORDS), "text", "text-generation"),
    "transformer-enhancement": (lambda m: m("transformer.TransformerSE").CNNTransformerSE(
        MELS, MELS, nhead=4, num_layers=4), "frames", "speech-enhancement"),
    "resnet-enhancement": (lambda m: m("EnhanceResnet").EnhanceResnet(), "samples",
                           "speech-enhancement"),
    "metricgan-discriminator": (lambda m: m("MetricGAN").MetricDiscriminator(), "two channels",
                                "speech-enhancement"),
    "metricgan-generator": (lambda m: m("MetricGAN").EnhancementGenerator(MELS), "frames, lengths",
                            "speech-enhancement"),
    "segan": (lambda m: m("segan_model").Generator(31, False, 0.0), "segan",
              "speech-enhancement"),
    "segan-discriminator": (lambda m: m("segan_model").Discriminator(31), "pair of sounds",
                            "speech-enhancement"),
    "sepformer": (lambda m: _sepformer(m), "samples", "source-separation"),
    "sepformer-skipless": (lambda m: _sepformer(m, masknet_extraskipconnection=False,
                           intra_norm_before=False), "samples", "source-separation"),
    "resepformer": (lambda m: m("resepformer").ResourceEfficientSeparator(
        64, causal=False, unit=64, segment_size=50, mem_type="av", seg_model=m(
            "resepformer").SBTransformerBlock_wnormandskip(2, 64, 4, 256),
        mem_model=m("resepformer").SBTransformerBlock_wnormandskip(2, 64, 4, 256)),
        "narrow frames", "source-separation"),
    **{f"dual-path-{kind}": ((lambda m, kind=kind: _dual_path(m, kind)), "channels first",
                             "source-separation")
       for kind in ("rnn", "transformer", "conformer", "dptnet", "pytorch")},
    "conv-tasnet-mask": (lambda m: m("conv_tasnet").MaskNet(64, 64, 128, 3, 4, 2, 2),
                         "narrow frames", "source-separation"),
    "conv-tasnet-mask-causal": (lambda m: m("conv_tasnet").MaskNet(
        64, 64, 128, 3, 4, 2, 2, norm_type="cLN", causal=True), "narrow frames",
        "source-separation"),
    "hifigan": (lambda m: _hifigan(m, "1"), "mels", "vocoding"),
    "hifigan-light": (lambda m: _hifigan(m, "2"), "mels", "vocoding"),
    "hifigan-discriminator": (lambda m: m("HifiGAN").HifiganDiscriminator(), "one channel",
                              "vocoding"),
    "hifigan-periods": (lambda m: m("HifiGAN").MultiPeriodDiscriminator(), "one channel",
                        "vocoding"),
    "diffwave": (lambda m: m("DiffWave").DiffWave(MELS, 6, 64, 3, 50), "diffusion", "vocoding"),
    "diffwave-unconditional": (lambda m: m("DiffWave").DiffWave(MELS, 6, 64, 3, 50,
                               unconditional=True), "diffusion alone", "vocoding"),
    "fastspeech2": (lambda m: m("FastSpeech2").FastSpeech2(
        2, 2, 256, 512, 256, 256, 0.1, 2, 2, 256, 512, 256, 256, 0.1, False, "1dcnn", [9, 1],
        WORDS, MELS, 256, 5, 3, 0.1, 0, 3, 3, 3), "phonemes", "text-to-speech"),
    "tacotron2-postnet": (lambda m: m("Tacotron2").Postnet(), "mels", "text-to-speech"),
    "fastspeech2-postnet": (lambda m: m("FastSpeech2").PostNet(), "frames", "text-to-speech"),
    "wav2vec-latents": (lambda m: m("wav2vec").W2VLatentExtractor(), "samples",
                        "feature-extraction"),
}  # fmt: skip
"""Name -> constructor, inputs and task of a net."""

names = listed("speechbrain.lobes.models.CRDNN", NETS, import_with_torchaudio)


def build(name: str) -> Net:
    """Build a net of moderate size, on a second of sound, or on the spectrogram of one."""
    make, inputs, task = row_of(NETS, name)

    def module(part: str) -> Any:
        return importlib.import_module(f"speechbrain.lobes.models.{part}")

    import_with_torchaudio("speechbrain")
    net: nn.Module = make(module)
    if inputs == "speech":
        net = Encoding(net)
    domain = "nlp" if inputs == "text" else "audio"
    return Net(net.eval(), _inputs(inputs), domain=domain, task=task)


class Encoding(nn.Module):
    """The encoder of a net that also decodes."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, frames: torch.Tensor) -> Any:
        """Return the features of every frame."""
        return self.net.encode(frames)


def _inputs(kind: str) -> tuple[NetInput, ...]:
    frames = floats(BATCH, FRAMES, MELS, axes=("batch", "frames", str(MELS)))
    mels = floats(BATCH, MELS, FRAMES, axes=("batch", str(MELS), "frames"))
    sound = floats(BATCH, SAMPLES, axes=("batch", "samples"), scale=0.1)
    text = tokens(WORDS, BATCH, 32)
    time_step = integers(50, BATCH, axes=("batch",))
    short = floats(BATCH, 1, FRAMES * 256 // 8, axes=("batch", "1", "samples"), scale=0.1)
    plain: dict[str, tuple[NetInput, ...]] = {
        "frames": (frames,),
        "frames, lengths": (frames, NetInput(torch.ones(BATCH), ("batch",))),
        "mels": (mels,),
        "narrow frames": (floats(BATCH, 64, 500, axes=("batch", "64", "frames")),),
        "channels first": (floats(BATCH, 64, 500, axes=("batch", "64", "frames")),),
        "samples": (sound,),
        "one channel": (floats(BATCH, 1, 8192, axes=("batch", "1", "samples"), scale=0.1),),
        "two channels": (floats(BATCH, 2, FRAMES, 257, axes=("batch", "2", "frames", "257")),),
        "pair of sounds": (floats(BATCH, 2, 16384, axes=("batch", "2", "samples"), scale=0.1),),
        "segan": (floats(BATCH, 16384, 1, axes=("batch", "samples", "1"), scale=0.1),),
        "text": (text,),
        "phonemes": (text, integers(4, BATCH, 32, low=1, axes=("batch", "sequence")),
                     floats(BATCH, 80, axes=("batch", "frames")),
                     floats(BATCH, 80, axes=("batch", "frames"))),
        "speech": (frames,),
        "speech and text": (frames, text),
        "diffusion": (short, time_step,
                      floats(BATCH, MELS, FRAMES // 8, axes=("batch", str(MELS), "frames"))),
        "diffusion alone": (short, time_step),
    }  # fmt: skip
    return plain[kind]
