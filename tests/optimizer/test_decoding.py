"""Decoders of transformers: the tokens of `generate`, and what a step leaves in a user's cache."""

import copy
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import passnet
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.errors import InputError
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.decoding.step import cache_name
from passnet.optimizer.decoding.step_plan import step_plan
from passnet.optimizer.optimize import Optimized, optimize_net
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.tiny_decoders import IDS, TINY

pytestmark = pytest.mark.xdist_group("test_decoding")  # one process optimises its nets

transformers = pytest.importorskip("transformers")
import_with_torchvision("transformers")

PADDED = torch.tensor([[0, 0, 0, 80, 41, 9, 33], [5, 17, 3, 80, 41, 9, 33]])
SHOWN = (PADDED != 0).long()
NEW = {"max_new_tokens": 12, "do_sample": False}


def llama() -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**TINY)).eval()


def qwen() -> Any:
    torch.manual_seed(0)
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**TINY, head_dim=8)).eval()


def gemma() -> Any:
    torch.manual_seed(0)
    kinds = ["sliding_attention", "full_attention"]
    own = {"head_dim": 8, "sliding_window": 6, "layer_types": kinds}
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**TINY, **own)).eval()


def mistral() -> Any:
    torch.manual_seed(0)
    config = transformers.MistralConfig(**TINY, head_dim=8, sliding_window=6)
    return transformers.MistralForCausalLM(config).eval()


def gpt2() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=256, bos_token_id=1,
        eos_token_id=None,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


def made(net: Any, engine: str, out: Path | None = None, **allowed: Any) -> Optimized:
    ranges = {"batch": (1, 4), "length": (1, 16)}
    settings = OptimizeSettings(
        backends=(engine,), seconds=0.02, budget_s=300, dynamic=ranges, **allowed
    )
    return optimize_net(net, [((IDS,), {})], settings, out, serves=engine)


@pytest.fixture(scope="module")
def optimized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, Path]]:
    """A tiny decoder, as it is and optimised, and the folder of that."""
    net, folder = llama(), tmp_path_factory.mktemp("decoder") / "out"
    done = made(net, "graph", folder)
    assert done.record.forms[0].chosen == "graph", done.record.forms[0].engines[1].reason
    yield net, done.net, folder


def generated(net: Any, ids: torch.Tensor, **settings: Any) -> Any:
    torch.manual_seed(3)
    return net.generate(ids, **{**NEW, **settings}, return_dict_in_generate=True)


def ran_steps(cache: Any) -> bool:
    """Whether our steps wrote the last position of a growing cache; eager torch makes it anew."""

    def is_ours(layer: Any) -> bool:
        buffer, written = vars(layer).get("_passnet_keys", (None, 0))
        is_in_buffer = buffer is not None and buffer.data_ptr() == layer.keys.data_ptr()
        return is_in_buffer and written == layer.keys.shape[2]

    return all(map(is_ours, cache.layers))


WAYS: dict[str, tuple[torch.Tensor, dict[str, Any]]] = {
    "greedy": (IDS, {}),
    "sampling": (IDS, {"do_sample": True}),
    "padding": (PADDED, {"attention_mask": SHOWN}),
    "beams": (IDS, {"num_beams": 3}),
    "several": (IDS, {"do_sample": True, "num_return_sequences": 3}),
    "prompt lookup": (torch.tensor([[5, 17, 3, 5, 17, 3, 5]]), {"prompt_lookup_num_tokens": 3}),
    "scores": (IDS, {"output_scores": True}),
    "static cache": (IDS, {"cache_implementation": "static"}),
}


MADE_ANEW = ("beams", "prompt lookup")
"""Ways that reorder or crop the cache after the last step."""


@pytest.mark.parametrize("way", WAYS)
def test_the_tokens_are_eager_torchs(
    optimized: tuple[Any, Any, Path], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    net, fast, _ = optimized
    ids, settings = WAYS[way]
    right = generated(net, ids, **settings)
    with caplog.at_level(logging.WARNING, "passnet"):
        found = generated(fast, ids, **settings)
    assert torch.equal(found.sequences, right.sequences)
    assert not [record for record in caplog.records if record.name == "passnet"]
    if way in MADE_ANEW:
        assert all("_passnet_keys" in vars(layer) for layer in found.past_key_values.layers)
    elif way != "static cache":
        assert ran_steps(found.past_key_values)


ASIDE: dict[str, Callable[[Any, Path], object]] = {
    "hidden states of generate": lambda fast, _: generated(fast, IDS, output_hidden_states=True),
    "hidden states of a call": lambda fast, _: fast(IDS, output_hidden_states=True),
    "saved": lambda fast, folder: fast.save_pretrained(folder),
    "its configuration changed and put back": lambda fast, _: (
        setattr(fast.config, "pad_token_id", 7),
        fast(IDS),
        setattr(fast.config, "pad_token_id", None),
    ),
}


@pytest.mark.parametrize("aside", ASIDE)
def test_steps_run_after(
    aside: str, optimized: tuple[Any, Any, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net, fast, _ = optimized
    ASIDE[aside](fast, tmp_path)
    fast._passnet._warned.clear()
    caplog.clear()
    with caplog.at_level(logging.WARNING, "passnet"):
        found = generated(fast, IDS)
    assert torch.equal(found.sequences, generated(net, IDS).sequences)
    assert not [record for record in caplog.records if record.name == "passnet"]


def test_a_step_of_too_many_rows_leaves_the_cache_as_it_is(
    optimized: tuple[Any, Any, Path], caplog: pytest.LogCaptureFixture
) -> None:
    net, fast, _ = optimized
    rows = IDS.repeat(5, 1)
    cache = net.generate(rows, **NEW, return_dict_in_generate=True).past_key_values
    fast._passnet._warned.clear()
    with caplog.at_level(logging.WARNING, "passnet"), torch.no_grad():
        logits = fast(rows[:, :1], past_key_values=copy.deepcopy(cache)).logits
        held = fast(rows[:, :1], past_key_values=cache).past_key_values
    assert "its batch of 5 is beyond 4" in caplog.text
    assert torch.isfinite(logits).all() and not ran_steps(held)


@pytest.mark.parametrize("is_mask", [True, False])
def test_a_call_that_is_no_step_is_eager_torchs_and_says_so_once(
    optimized: tuple[Any, Any, Path], caplog: pytest.LogCaptureFixture, is_mask: bool
) -> None:
    net, fast, _ = optimized
    config = mistral().config
    hidden = torch.ones(1, 1, IDS.shape[1], IDS.shape[1], dtype=torch.bool)  # tokens see later ones
    fast._passnet._warned.clear()
    logits = []
    with caplog.at_level(logging.WARNING, "passnet"), torch.no_grad():
        for each in (net, fast, fast):
            own = {"past_key_values": transformers.DynamicCache(config=config)}
            logits.append(each(IDS, **({"attention_mask": hidden} if is_mask else own)).logits)
    assert torch.equal(logits[0], logits[1]) and torch.equal(logits[0], logits[2])
    why = "its attention mask hides" if is_mask else "its cache has other layers (DynamicCache)"
    [record] = [each for each in caplog.records if each.name == "passnet"]
    assert why in record.getMessage()


def test_a_chat_goes_on_with_its_cache(optimized: tuple[Any, Any, Path]) -> None:
    net, fast, _ = optimized
    texts = []
    for each in (net, fast):
        cache = transformers.DynamicCache(config=net.config)
        first = generated(each, IDS, past_key_values=cache).sequences
        longer = torch.cat([first, torch.tensor([[8, 2, 50]])], 1)
        texts.append(generated(each, longer, past_key_values=cache).sequences)
    assert torch.equal(*texts)


def test_steps_of_eager_torch_may_come_between(optimized: tuple[Any, Any, Path]) -> None:
    net, fast, _ = optimized
    name, logits = cache_name(net), []
    for order in ((net, net, net, net), (fast, net, fast, fast)):
        cache, last = transformers.DynamicCache(config=net.config), None
        with torch.no_grad():
            for ids, each in zip(IDS.split(2, 1), order, strict=True):
                last = each(input_ids=ids, **{name: cache}, use_cache=True).logits
        logits.append(last)
    torch.testing.assert_close(*logits)


def test_what_others_hold_of_a_cache_is_not_overwritten(optimized: tuple[Any, Any, Path]) -> None:
    net, fast, _ = optimized
    with torch.no_grad():
        first = fast(input_ids=IDS, use_cache=True)
        name = cache_name(net)
        cache = first[name]
        held = cache.layers[0].keys
        copy = held.clone()
        cache.crop(-3)
        fast(input_ids=IDS[:, :2], use_cache=True, **{name: cache})
    assert torch.equal(held, copy)
    assert cache.get_seq_length() == IDS.shape[1] - 3 + 2


def test_the_first_token_has_all_logits_or_the_last(optimized: tuple[Any, Any, Path]) -> None:
    net, fast, _ = optimized
    with torch.no_grad():
        for settings in ({}, {"logits_to_keep": 1}, {"logits_to_keep": 3}, {"logits_to_keep": 99}):
            right, found = net(input_ids=IDS, **settings), fast(input_ids=IDS, **settings)
            assert type(found) is type(right)
            torch.testing.assert_close(found.logits, right.logits)
        assert ran_steps(
            found[next(name for name in ("cache", "past_key_values") if name in found)]
        )


def test_copies_of_a_layer_go_on_apart(optimized: tuple[Any, Any, Path]) -> None:
    net, fast, _ = optimized
    logits = []
    for each in (net, fast):
        with torch.no_grad():
            first = each(input_ids=IDS, use_cache=True)
            name = cache_name(net)
            one = first[name]
            other = copy.copy(one)
            other.layers = [copy.copy(layer) for layer in one.layers]
            each(input_ids=IDS[:, :2], use_cache=True, **{name: one})
            each(input_ids=IDS[:, 4:6], use_cache=True, **{name: other})
            logits.append(each(input_ids=IDS[:, 2:3], use_cache=True, **{name: one}).logits)
    torch.testing.assert_close(*logits)


def test_a_cache_of_inference_mode_goes_on_without_it(optimized: tuple[Any, Any, Path]) -> None:
    net, fast, _ = optimized
    logits = []
    for each in (net, fast):
        with torch.inference_mode():
            first = each(input_ids=IDS, use_cache=True)
        name = cache_name(net)
        with torch.no_grad():
            logits.append(each(input_ids=IDS, use_cache=True, **{name: first[name]}).logits)
    torch.testing.assert_close(*logits)


NO_STEPS: dict[str, dict[str, Any]] = {
    "hidden states": {"output_hidden_states": True},
    "no cache": {"use_cache": False},
    "embeddings": {"input_ids": None, "inputs_embeds": torch.ones(1, 3, 32)},
    "a mask of its own": {"attention_mask": torch.ones(1, 1, 7, 7, dtype=torch.bool)},
    "labels": {"labels": IDS},
    "all but the first logits": {"logits_to_keep": -2},
}


@pytest.mark.parametrize("name", NO_STEPS)
def test_calls_that_are_no_steps_run_the_decoder(
    optimized: tuple[Any, Any, Path], name: str
) -> None:
    net, fast, _ = optimized
    call = {"input_ids": IDS, **NO_STEPS[name]}
    with torch.no_grad():
        right, found = net(**call), fast(**call)
    assert torch.equal(found.logits, right.logits) and list(found) == list(right)


def test_an_id_out_of_the_vocabulary_is_eager_torchs_error(
    optimized: tuple[Any, Any, Path],
) -> None:
    _, fast, _ = optimized
    with torch.no_grad(), pytest.raises(IndexError):
        fast(input_ids=torch.tensor([[5, 97]]))


def test_updates_of_weights_are_seen(optimized: tuple[Any, Any, Path]) -> None:
    net, fast, _ = optimized
    weight = net.lm_head.weight
    kept = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.copy_(kept.flip(0))
        right = generated(net, IDS).sequences
        found = generated(fast, IDS)
        assert torch.equal(found.sequences, right) and ran_steps(found.past_key_values)
    finally:
        with torch.no_grad():
            weight.copy_(kept)


def test_a_decoder_is_loaded(optimized: tuple[Any, Any, Path]) -> None:
    net, _, folder = optimized
    loaded = passnet.load(folder, net)
    found = generated(loaded, IDS)
    assert torch.equal(found.sequences, generated(net, IDS).sequences)
    assert ran_steps(found.past_key_values)


def test_a_decoder_has_batch_and_length() -> None:
    settings = OptimizeSettings(backends=("graph",), dynamic={"input_ids": {1: (1, 9)}})
    with pytest.raises(InputError, match="'input_ids' of a decoder; it has batch and length"):
        optimize_net(llama(), [((IDS,), {})], settings)


def added_masks() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**TINY, attn_implementation="eager")
    return transformers.LlamaForCausalLM(config).eval()


FAMILIES = {
    "added masks": added_masks,
    "qwen": qwen,
    "gemma": gemma,
    "gpt2": gpt2,
    "mistral": mistral,
    "llama": llama,
}
ENGINES = [
    name
    for name in ("graph", "onnxruntime_frozen", "openvino_frozen", "aot_frozen")
    if not BACKENDS[name].missing
]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_families_and_backends(family: str, engine: str) -> None:
    net = FAMILIES[family]()
    done = made(net, engine)
    assert done.record.decodes, done.record.forms[0].engines[1].reason
    for way, (ids, settings) in WAYS.items():
        right = generated(net, ids, **settings).sequences
        assert torch.equal(generated(done.net, ids, **settings).sequences, right), way


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "error"), [("aot_int8", 0.05), ("aot_int8_frozen", 0.05), ("aot_int4", 0.3)]
)
@pytest.mark.parametrize("family", ["llama", "gemma", "gpt2"])
def test_steps_in_fewer_bits(family: str, engine: str, error: float) -> None:
    net = FAMILIES[family]()
    is_frozen = engine.endswith("frozen")
    done = made(net, engine, precision=("int8", "int4"), tolerance=1.0, freeze=is_frozen)
    assert done.record.decodes, done.record.forms[0].engines[1].reason
    for ids, settings in (WAYS[way] for way in ("greedy", "padding", "static cache", "beams")):
        generated(done.net, ids, **settings)
    for ids in (IDS, PADDED):
        scores = [generated(each, ids, output_scores=True) for each in (done.net, net)]
        steps = [*zip(scores[0].scores, scores[1].scores, strict=True)]
        same = (scores[0].sequences == scores[1].sequences).all(0)[-len(steps) :]
        first_other = int(same.long().argmin()) if not same.all() else len(steps)
        for own, right in steps[: first_other + 1]:
            assert (own - right).norm() < error * right.norm()


def test_prompts_are_timed_before_long_pasts() -> None:
    config = transformers.LlamaConfig(**{**TINY, "max_position_embeddings": 4096})
    plan = step_plan(transformers.LlamaForCausalLM(config).eval())
    assert [sizes[:3] for sizes in plan.measured[:4]] == [
        (1, 1, 128), (1, 16, 0), (1, 128, 0), (1, 512, 0),
    ]  # fmt: skip
    assert {(1, 1, 2048), (8, 1, 128)} < {sizes[:3] for sizes in plan.measured}


@pytest.mark.slow
def test_torch_compile_serves_the_steps_of_a_decoder(tmp_path: Path) -> None:
    settings = OptimizeSettings(budget_s=120.0, seconds=0.05, backends=("compile",))
    optimized = optimize_net(llama(), [((IDS,), {})], settings, tmp_path / "fast")
    [record] = [each for each in optimized.record.forms[0].engines if each.engine == "compile"]
    assert record.status == "ok", record.reason
