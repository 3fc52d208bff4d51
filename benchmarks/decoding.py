"""Decoders of 100 to 200 million parameters: tokens a second in eager PyTorch, set up by hand as
guides say, and in passnet.

Run it with `python -m benchmarks.decoding FOLDER [--net NAME ...] [--threads N] [--budget 10m]`,
and again to go on; `--table` prints what there is. By hand: torch.compile with a static cache, and
with consent the same after torchao's int8 of linear layers. Weights are random and do not change.
A prompt's time is that of one new token, a token's that of the 32 after it.
"""

import copy
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

import passnet
from benchmarks.in_turns import Run, engines_of, main
from passnet.core.jobs.run_plan import seconds_of
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.judge.timing.rounds import time_calls
from passnet.judge.verdict.precision import relative_error
from passnet.pages.tables.tables import Table

PROMPTS = (16, 128, 512)
NEW = 32
SECONDS = 6.0
"""Time for the rounds of each way at each prompt."""

CONSENT: dict[str, Any] = {"precision": ("int8",), "tolerance": 0.15}
"""Keys and values of late layers are off by 0.06 to 0.14 in int8, as weights are random."""

OURS = ("passnet", "passnet_consent")

COMMON = {
    **{"vocab_size": 32_000, "hidden_size": 768, "num_attention_heads": 12},
    **{"num_key_value_heads": 4, "max_position_embeddings": 2048, "eos_token_id": None},
}


def _llama() -> Any:
    transformers: Any = import_with_torchvision("transformers")
    config = transformers.LlamaConfig(**COMMON, num_hidden_layers=16, intermediate_size=2048)
    return transformers.LlamaForCausalLM(config)


def _qwen3() -> Any:
    transformers: Any = import_with_torchvision("transformers")
    config = transformers.Qwen3Config(
        **COMMON,
        num_hidden_layers=14,
        intermediate_size=2304,
        head_dim=64,
        tie_word_embeddings=True,
    )
    return transformers.Qwen3ForCausalLM(config)


def _gemma3() -> Any:
    transformers: Any = import_with_torchvision("transformers")
    sliding = ["sliding_attention"] * 5 + ["full_attention"]
    own = {"num_hidden_layers": 18, "intermediate_size": 2048, "head_dim": 64}
    config = transformers.Gemma3TextConfig(
        **COMMON, **own, sliding_window=256, layer_types=sliding * 3
    )
    return transformers.Gemma3ForCausalLM(config)


NETS: Mapping[str, Callable[[], Any]] = {"qwen3": _qwen3, "llama": _llama, "gemma3": _gemma3}


def _compiled(net: Any) -> Any:
    own = copy.deepcopy(net)
    own.generation_config.cache_implementation = "static"
    own.forward = torch.compile(own.forward)
    return own


def _torchao(net: Any) -> Any:
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    own = copy.deepcopy(net)
    quantize_(own, Int8DynamicActivationInt8WeightConfig())
    own.generation_config.cache_implementation = "static"
    own.forward = torch.compile(own.forward)
    return own


WAYS: Mapping[str, Callable[[Any], Any]] = {"compile_static": _compiled, "torchao_int8": _torchao}


def _errors(net: Any, eager: Any, ids: torch.Tensor) -> list[float]:
    """Return the relative errors of the logits after a prompt, and after one more token."""
    first: list[torch.Tensor] = []

    def logits(net: Any) -> list[torch.Tensor]:
        found = net.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=2,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
            # both go on with eager's token
            prefix_allowed_tokens_fn=lambda _, own: (
                first[0].tolist() if first and len(own) == ids.shape[1] else range(32_000)
            ),
        )
        first[:] = first or [found.sequences[0, ids.shape[1]][None]]
        return list(found.logits)

    pairs = zip(*(logits(each) for each in (eager, net)), strict=True)
    return [relative_error(own.double().numpy(), right.double().numpy()) for right, own in pairs]


def _tokens(net: Any, ids: torch.Tensor, count: int) -> torch.Tensor:
    tokens: torch.Tensor = net.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False
    )
    return tokens


def measure(name: str, threads: int, budget: str) -> dict[str, Any]:
    """Build and time one decoder in every way, in this process."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    net = NETS[name]().eval()
    prompts = {length: torch.randint(2, 32_000, (1, length)) for length in PROMPTS}
    millions = sum(weight.numel() for weight in net.parameters()) / 1e6
    record: dict[str, Any] = {"net": name, "threads": threads, "millions": millions, "ways": {}}
    runs: dict[str, Any] = {"eager": net}
    right = {length: _tokens(net, ids, NEW + 1) for length, ids in prompts.items()}
    for way in (*WAYS, *OURS):
        start = time.perf_counter()
        facts: dict[str, Any] = {}
        try:
            if way in WAYS:
                runs[way] = WAYS[way](net)
            else:
                consent = CONSENT if way == "passnet_consent" else {}
                fast = passnet.optimize(
                    net, prompts[16], freeze=True, budget_s=seconds_of(budget), **consent
                )
                facts["chosen"] = engines_of(fast)
                facts["by_size"] = [
                    [*sizes, other.engine if other else "eager"]
                    for built in fast.built_backends
                    for sizes, other in built.by_size
                ]
                runs[way] = fast
            for ids in prompts.values():
                _tokens(runs[way], ids, 4)
            found = {length: _tokens(runs[way], ids, NEW + 1) for length, ids in prompts.items()}
            facts["error"], facts["step_error"] = _errors(runs[way], net, prompts[128])
            same = [torch.equal(found[length], right[length]) for length in PROMPTS]
            facts |= {"build_s": time.perf_counter() - start, "same_tokens": same}
        except Exception as cause:  # noqa: BLE001 (of foreign code; the record says why)
            runs.pop(way, None)
            facts["reason"] = f"{type(cause).__name__}: {cause}"[:300]
        record["ways"][way] = facts
    record["ways"]["eager"] = {}
    for length, ids in prompts.items():
        calls = {
            f"{way} {count}": _calling(run, ids, count)
            for way, run in runs.items()
            for count in (1, NEW + 1)
        }
        times = time_calls(calls, SECONDS, always=tuple(calls))
        for way in runs:
            first, last = (times.ms(f"{way} {count}") for count in (1, NEW + 1))
            own = {"prompt_ms": first, "token_ms": (last - first) / NEW}
            record["ways"][way].setdefault("times", {})[str(length)] = own
    return record


def _calling(net: Any, ids: torch.Tensor, count: int) -> Callable[[], object]:
    return lambda: _tokens(net, ids, count)


def tables(records: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Yield a table for each number of threads."""
    for threads in sorted({record["threads"] for record in records}):
        rows = []
        for record in records:
            if record["threads"] != threads:
                continue
            eager = record["ways"]["eager"]["times"]
            for way, facts in record["ways"].items():
                if "times" not in facts:
                    rows.append((record["net"], way, *["–"] * 7, facts["reason"][:60]))
                    continue
                cells = []
                for length in map(str, PROMPTS):
                    own = facts["times"][length]
                    per_s = 1e3 / own["token_ms"]
                    gain = eager[length]["token_ms"] / own["token_ms"]
                    cells += [f"{own['prompt_ms']:.0f}", f"{per_s:.1f} ({gain:.2f})"]
                chosen = ", ".join(facts.get("chosen", ()))
                error = f"{facts.get('error', 0.0):.0e}, {facts.get('step_error', 0.0):.0e}"
                rows.append((record["net"], way, *cells, error, chosen))
        heads = [f"{kind} {n}" for n in PROMPTS for kind in ("prompt ms", "tokens/s")]
        yield Table(
            f"Decoding one sequence, {threads} threads",
            ("net", "way", *heads, "error", "chosen"),
            rows,
            "In brackets: the speedup of a token over eager PyTorch.",
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
        sys.exit()
    main(Run("benchmarks.decoding", tuple(NETS), tables), str(__doc__))
