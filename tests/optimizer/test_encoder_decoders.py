"""Encoder-decoders of transformers: the tokens of `generate`, and which calls are steps."""

import copy
import inspect
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import passnet
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.errors import InputError
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.decoding.encoder import source_call
from passnet.optimizer.decoding.step import cache_name
from passnet.optimizer.optimize import Optimized, optimize_net
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.tiny_decoders import IDS

pytestmark = pytest.mark.xdist_group("test_encoder_decoders")  # one process optimises its nets

transformers = pytest.importorskip("transformers")
import_with_torchvision("transformers")

PADDED = torch.tensor([[80, 41, 9, 33, 0, 0, 0], [5, 17, 3, 80, 41, 9, 33]])
FEATURES = torch.randn(2, 8, 40, generator=torch.Generator().manual_seed(1))
PROMPT = torch.tensor([[1, 5, 7, 9]])
PROMPTS = torch.tensor([[0, 0, 5, 7], [1, 5, 7, 9]])
REPEATS = torch.tensor([[5, 17, 3, 5, 17, 3, 5]])
NEW = {"max_new_tokens": 12, "do_sample": False}
OF_BOTH: dict[str, Any] = {
    "vocab_size": 97,
    "d_model": 32,
    "decoder_start_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": None,
    "pad_token_id": 0,
}
OF_LAYERS: dict[str, Any] = {
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
}


def t5(**others: Any) -> Any:
    torch.manual_seed(0)
    own = {"d_kv": 8, "d_ff": 48, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 4}
    config = transformers.T5Config(**OF_BOTH, **own, **others)
    return transformers.T5ForConditionalGeneration(config).eval()


def whisper() -> Any:
    torch.manual_seed(0)
    own = {"num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 64}
    suppressed = {"suppress_tokens": None, "begin_suppress_tokens": None}
    config = transformers.WhisperConfig(**OF_BOTH, **OF_LAYERS, **own, **suppressed)
    return transformers.WhisperForConditionalGeneration(config).eval()


def bart() -> Any:
    torch.manual_seed(0)
    own = {"max_position_embeddings": 64, "forced_eos_token_id": None}
    config = transformers.BartConfig(**OF_BOTH, **OF_LAYERS, **own)
    return transformers.BartForConditionalGeneration(config).eval()


def added_masks() -> Any:
    return t5(attn_implementation="eager")


NETS = {"t5": t5, "whisper": whisper, "bart": bart, "added masks": added_masks}


def ways(family: str) -> dict[str, tuple[torch.Tensor, dict[str, Any]]]:
    """Ways to call `generate`; features have no padding."""
    has_ids = family != "whisper"
    one, two = (IDS, PADDED) if has_ids else (FEATURES[:1], FEATURES)
    mask = {"attention_mask": (PADDED != 0).long()} if has_ids else {}
    shown = {"decoder_attention_mask": (PROMPTS != 0).long()}
    return {
        "greedy": (one, {}),
        "sampling": (one, {"do_sample": True}),
        "padding": (two, mask),
        "beams": (two, {**mask, "num_beams": 3}),
        "several": (one, {"do_sample": True, "num_return_sequences": 3}),
        "scores": (one, {"output_scores": True}),
        "prompt": (one, {"decoder_input_ids": PROMPT}),
        "padded prompts": (two, {**mask, **shown, "decoder_input_ids": PROMPTS}),
        "prompt lookup": (one, {"decoder_input_ids": REPEATS, "prompt_lookup_num_tokens": 3}),
        "static cache": (two, {**mask, "num_beams": 2, "cache_implementation": "static"}),
    }


WAYS = ways("")


def made(family: str, engine: str, out: Path | None = None) -> tuple[Any, Optimized]:
    net = NETS[family]()
    has_ids = family != "whisper"
    sizes = {"batch": (1, 6), "length": (1, 16)} if has_ids else {"batch": (1, 6)}
    settings = OptimizeSettings(backends=(engine,), seconds=0.02, budget_s=300, dynamic=sizes)
    source = IDS if has_ids else FEATURES[:1]
    return net, optimize_net(net, [((source,), {})], settings, out, serves=engine)


@pytest.fixture(scope="module", params=["t5", pytest.param("whisper", marks=pytest.mark.slow)])
def optimized(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Any, Any, Path]]:
    """A tiny encoder-decoder, as it is and optimised, and the folder of that."""
    folder = tmp_path_factory.mktemp("net") / "out"
    net, done = made(request.param, "graph", folder)
    reasons = [form.engines[1].reason for form in done.record.forms]
    assert [form.chosen for form in done.record.forms] == ["graph", "graph"], reasons
    yield request.param, net, done.net, folder


def generated(net: Any, source: torch.Tensor, **settings: Any) -> Any:
    torch.manual_seed(3)
    return net.generate(source, **{**NEW, **settings}, return_dict_in_generate=True)


def tokens_of(outputs: Any) -> torch.Tensor:
    """Whisper returns the tokens alone for some settings."""
    return outputs if isinstance(outputs, torch.Tensor) else outputs["sequences"]


@contextmanager
def calls_of(net: Any) -> Iterator[dict[str, int]]:
    """Count the calls that the net's own encoder and decoder run in eager torch."""
    counts = {"encoder": 0, "decoder": 0}
    names = {net.get_encoder(): "encoder", net.get_decoder(): "decoder"}
    codes = {inspect.unwrap(type(part).forward).__code__ for part in names}

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            counts[names[frame.f_locals["self"]]] += 1

    sys.setprofile(count)  # hooks would keep calls from backends
    try:
        yield counts
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("way", WAYS)
def test_the_tokens_are_eager_torchs_and_all_but_the_first_call_are_steps(
    optimized: tuple[str, Any, Any, Path], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    family, net, fast, _ = optimized
    source, settings = ways(family)[way]
    right = tokens_of(generated(net, source, **settings))
    with caplog.at_level(logging.WARNING, "passnet"), calls_of(net) as counts:
        found = generated(fast, source, **settings)
    assert torch.equal(tokens_of(found), right)
    assert counts == {"encoder": 0, "decoder": 1}
    assert not [record for record in caplog.records if record.name == "passnet"]


def test_a_cache_is_the_users_own(optimized: tuple[str, Any, Any, Path]) -> None:
    """Its own layers grow in place, and steps and calls of eager torch may alternate."""
    family, net, fast, _ = optimized
    source, _ = ways(family)["greedy"]
    name, logits, caches = cache_name(net), [], []
    with torch.no_grad():
        encoded = net.get_encoder()(source)
        for order in ((net, net, net), (fast, fast, fast), (net, fast, net), (fast, net, fast)):
            cache = transformers.EncoderDecoderCache(
                transformers.DynamicCache(), transformers.DynamicCache()
            )
            for ids, each in zip(PROMPT[:, :3].split(1, 1), order, strict=True):
                call = {"decoder_input_ids": ids, "encoder_outputs": encoded, name: cache}
                outputs = each(**call, use_cache=True)
                assert outputs[name] is cache
            logits.append(outputs.logits)
            caches.append(cache)
    for other in logits[1:]:
        torch.testing.assert_close(other, logits[0])
    for layer in caches[1].self_attention_cache.layers:
        assert layer.keys.data_ptr() == vars(layer)["_passnet_keys"][0].data_ptr()
    for pair in zip(*(each.cross_attention_cache.layers for each in caches[:2]), strict=True):
        assert torch.equal(*(layer.keys for layer in pair))


def test_a_step_returns_what_the_net_returns(optimized: tuple[str, Any, Any, Path]) -> None:
    family, net, fast, _ = optimized
    source, _ = ways(family)["greedy"]
    found = []
    with torch.no_grad():
        encoded = net.get_encoder()(source)
        for each in (net, fast):
            first = each(decoder_input_ids=PROMPT, encoder_outputs=encoded)
            cache = {cache_name(net): first[cache_name(net)]}
            found.append(each(decoder_input_ids=PROMPT, encoder_outputs=encoded, **cache))
    right, own = found
    assert type(own) is type(right) and list(own) == list(right)
    torch.testing.assert_close(own.logits, right.logits)
    assert own.encoder_last_hidden_state is encoded.last_hidden_state


def test_updates_of_weights_are_seen(optimized: tuple[str, Any, Any, Path]) -> None:
    family, net, fast, _ = optimized
    source, _ = ways(family)["greedy"]
    weight = net.get_output_embeddings().weight
    kept = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.copy_(kept.flip(0))
        with calls_of(net) as counts:
            found = tokens_of(generated(fast, source))
        assert torch.equal(found, tokens_of(generated(net, source)))
        assert counts["decoder"] == 1
    finally:
        with torch.no_grad():
            weight.copy_(kept)


def test_an_encoder_decoder_is_loaded(optimized: tuple[str, Any, Any, Path]) -> None:
    family, net, _, folder = optimized
    loaded = passnet.load(folder, net)
    source, settings = ways(family)["beams"]
    with calls_of(net) as counts:
        found = tokens_of(generated(loaded, source, **settings))
    assert counts == {"encoder": 0, "decoder": 1}
    assert torch.equal(found, tokens_of(generated(net, source, **settings)))


def test_features_have_no_length() -> None:
    settings = OptimizeSettings(backends=("graph",), dynamic={"length": (1, 90)})
    with pytest.raises(InputError, match="'length' of an encoder; it has batch"):
        optimize_net(whisper(), [((FEATURES,), {})], settings)


def test_a_call_of_an_encoder_has_its_input_alone() -> None:
    encoder = t5().get_encoder()
    mask = torch.ones_like(IDS)
    for args, kwargs in (((IDS,), {}), ((), {"input_ids": IDS, "attention_mask": None})):
        found = source_call(encoder, args, kwargs)
        assert found is not None and torch.equal(found["attention_mask"], mask)
    assert source_call(encoder, (IDS,), {"input_ids": IDS}) is None
    assert source_call(encoder, (IDS,), {"decoder_input_ids": PROMPT}) is None
    assert source_call(encoder, (), {"attention_mask": mask}) is None


# The tests below come last: to return hidden states, transformers leaves hooks on a net, and a net
# with hooks is no longer served by backends.
NO_STEPS: dict[str, dict[str, Any]] = {
    "no source": {"encoder_outputs": None},
    "hidden states": {"output_hidden_states": True},
    "no cache": {"use_cache": False},
    "labels": {"labels": PROMPT},
    "a tuple": {"return_dict": False},
}


@pytest.mark.parametrize("name", NO_STEPS)
def test_calls_that_are_no_steps_run_the_net(
    optimized: tuple[str, Any, Any, Path], name: str
) -> None:
    family, net, fast, _ = optimized
    source, _ = ways(family)["greedy"]
    with torch.no_grad():
        encoded = net.get_encoder()(source)
        first = net(decoder_input_ids=PROMPT, encoder_outputs=encoded)
        outputs = []
        for each in (net, fast):
            cache = {cache_name(net): copy.deepcopy(first[cache_name(net)])}
            call = {"decoder_input_ids": PROMPT, "encoder_outputs": encoded, **cache}
            call |= NO_STEPS[name]
            if name == "no source":
                call[net.main_input_name] = source
            if name == "no cache":
                call.pop(cache_name(net))
            outputs.append(each(**call))
    assert type(outputs[0]) is type(outputs[1])
    number = 1 if name == "labels" else 0
    for pair in zip(outputs[0][number : number + 1], outputs[1][number : number + 1], strict=True):
        assert torch.equal(*pair)


def test_an_encoder_is_optimised_and_the_nets_own_is_not(
    optimized: tuple[str, Any, Any, Path],
) -> None:
    family, net, fast, _ = optimized
    source, _ = ways(family)["greedy"]
    encoder = fast.get_encoder()
    assert encoder is not net.get_encoder() and "FastNet" in repr(encoder)
    with torch.no_grad():
        for settings in ({}, {"output_hidden_states": True}):
            right = net.get_encoder()(source, **settings)
            found = encoder(source, **settings)
            assert type(found) is type(right) and list(found) == list(right)
            torch.testing.assert_close(found.last_hidden_state, right.last_hidden_state)


ENGINES = [
    name
    for name in ("onnxruntime_frozen", "openvino_frozen", "aot_frozen")
    if not BACKENDS[name].missing
]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", NETS)
def test_families_and_backends(family: str, engine: str) -> None:
    net, done = made(family, engine)
    assert [form.chosen for form in done.record.forms] == [engine, engine]
    for way, (source, settings) in ways(family).items():
        right = tokens_of(generated(net, source, **settings))
        assert torch.equal(tokens_of(generated(done.net, source, **settings)), right), way
