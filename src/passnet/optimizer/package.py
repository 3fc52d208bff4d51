"""An optimised net on disk."""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from passnet.bench.environment import describe_environment
from passnet.core.records.folders import inductor_cache
from passnet.core.records.serialise import read_json
from passnet.errors import BackendError, InputError, boundary
from passnet.optimizer.backends.backend import Backend, load_backend, with_checks
from passnet.optimizer.backends.registry import all_backends
from passnet.optimizer.call.attributes import code_of, plain_attributes
from passnet.optimizer.call.fast_net import FastNet, copied, fast_net, unwrapped
from passnet.optimizer.call.net_call import (
    BuiltBackend,
    NetCall,
    as_module,
    name_of,
    state_tensors,
    weights_of,
)
from passnet.optimizer.call.process_state import outside_inference_mode, process_state_kept
from passnet.optimizer.compare.outputs import compare_outputs
from passnet.optimizer.decoding.step_plan import step_plan
from passnet.optimizer.record import RECORD_FILE, OptimizedRecord
from passnet.optimizer.tune import chosen_backend

EXAMPLE_FILE = "example.pt"
NET_FILE = "net.json"
"""The net that was optimised, as `NetFacts`."""

_log = logging.getLogger("passnet")


@dataclass(frozen=True, slots=True)
class NetFacts:
    """The attributes and the code of a net as it was, and of its copy after calls, by path.

    Each is of `call.attributes`: `plain_attributes` and `code_of`. `asked` has the inputs, and the
    settings on which the choice among right backends depends.
    """

    attributes: tuple[dict[str, str], dict[str, str]]
    code: tuple[dict[str, str], dict[str, str]]
    asked: dict[str, str] = field(default_factory=dict)


def signature_folder(folder: Path, number: int) -> Path:
    """Return the folder of one input signature."""
    return folder / f"form-{number}"


def save_example(folder: Path, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Save the arguments of an example, which must be tensors and plain values."""
    path = folder / EXAMPLE_FILE
    torch.save((args, dict(kwargs)), path)
    with boundary(InputError, "the inputs cannot be saved; give tensors and plain values"):
        torch.load(path, weights_only=True)


@outside_inference_mode()
def load(
    folder: str | Path, net: Callable[..., Any], backends: Mapping[str, Backend] | None = None
) -> FastNet:
    """Load an optimised net from its folder, in seconds, in another process.

    Args:
        folder: written by `passnet.optimize(..., out=folder)`.
        net: the same net, built again; a copy of it runs.
        backends: the backends by name; None for all.

    Raises:
        InputError: the folder fits neither this net with its folded weights nor this torch or CPU.
    """
    folder = Path(folder)
    if not (folder / RECORD_FILE).is_file():
        raise InputError(f"{folder}: holds no optimised net; give what passnet.optimize wrote")
    record = read_json(folder / RECORD_FILE, OptimizedRecord)
    if not (folder / NET_FILE).is_file():
        raise InputError(
            f"{folder}: is of an earlier passnet, which recorded no code of the net; optimise the "
            "net again"
        )
    facts = read_json(folder / NET_FILE, NetFacts)
    inductor_cache()  # of our own, where the usual folder is another user's
    backends = all_backends() if backends is None else backends
    has_values = _check_fit(record, net, folder)
    code = code_of(as_module(unwrapped(net)))
    _check_facts(folder, facts.code, (code, code))
    built_backends: list[BuiltBackend] = []
    with process_state_kept():
        # no call writes into weights, or its signature had been served by eager torch
        net_copy, *_ = copied(net, (), shares_weights=True)
        before = plain_attributes(as_module(net_copy))
        _check_facts(folder, facts.attributes, (before, before), "training")
        plan = step_plan(net_copy) if record.decodes else None
        for number, signature in enumerate(record.forms):
            home = signature_folder(folder, number)
            with boundary(InputError, f"{home / EXAMPLE_FILE}: cannot be read; optimise again"):
                args, kwargs = torch.load(home / EXAMPLE_FILE, weights_only=True)
            if signature.chosen == "eager":
                continue
            own: Any = net_copy if plan is None else plan.step
            own = own.net.get_encoder() if plan and number else own  # which follows the step
            of_step = None if number else plan
            call = NetCall(own, args, kwargs, ranges=signature.size_ranges, plan=of_step)
            if call.refusal:
                raise InputError(f"{folder}: {call.refusal}; when it was optimised it did not")
            by_size = [each.chosen for each in signature.sizes]
            names = dict.fromkeys([signature.chosen, *by_size, signature.instead])
            names = [name for name in names if name not in ("", "eager")]
            if not has_values:
                names = [name for name in names if not backends[name].is_frozen]
            records = {engine.engine: engine for engine in signature.engines}
            loaded = {
                name: with_checks(
                    _loaded(name, backends[name], call, home / name, signature.allowed_error),
                    record.freeze,
                    records[name],
                )
                for name in names
            }
            if loaded:
                chosen = signature.chosen if signature.chosen in loaded else names[0]
                built_backends.append(chosen_backend(replace(signature, chosen=chosen), loaded))
    after = plain_attributes(as_module(net_copy))
    _check_facts(folder, facts.attributes, (before, after))
    warns = len(built_backends) == len(record.forms)
    return fast_net(net, built_backends, warns, plan.output_type if plan else None)


def _check_facts(
    folder: Path,
    recorded: Sequence[Mapping[str, str]],
    current: Sequence[Mapping[str, str]],
    only: str = "",
) -> None:
    """Raise InputError if a fact has neither before nor after calls a value that it had."""
    names = dict.fromkeys(name for values in (*recorded, *current) for name in values)
    for name in names:
        then = {values.get(name, "nothing") for values in recorded}
        now = {values.get(name, "nothing") for values in current}
        if name.endswith(only) and then.isdisjoint(now):
            raise InputError(
                f"{folder}: {name} of this net is {_shortened(current[0].get(name))}, and was "
                f"{_shortened(recorded[0].get(name))} when it was optimised; build the net as it "
                "was, or optimise it again"
            )


def _shortened(text: str | None) -> str:
    return "nothing" if text is None else text if len(text) <= 120 else f"{text[:120]}..."


def _loaded(
    name: str, backend: Backend, call: NetCall, home: Path, allowed: float | None
) -> BuiltBackend:
    """Load a backend and check it on the example; the full comparison was made before."""
    folder, allowed = home.parent.parent, allowed if backend.precision else None
    try:
        built = load_backend(name, backend, call, home)
    except BackendError as cause:
        raise InputError(f"{folder}: {cause}") from cause
    outputs = built.run(call.tensors())
    if wrong := compare_outputs(outputs, call.outputs, None, built.is_frozen, allowed).wrong:
        raise InputError(f"{folder}: {name} is wrong here: {wrong}; optimise again")
    return built


def digest_of_weights(net: Callable[..., Any], with_values: bool = False) -> str:
    """Return a digest of names, shapes and dtypes of weights, and of values if asked for."""
    digest, module = hashlib.sha256(), as_module(net)
    # tensors in attributes may be made by a first call: they count with values alone
    own = state_tensors(module) if with_values else weights_of(module)
    for name, weight in sorted(own.items()):
        dtype, device = str(weight.dtype), str(weight.device)
        digest.update(repr((name, tuple(weight.shape), weight.stride(), dtype, device)).encode())
        if with_values:
            flat = weight.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _check_fit(record: OptimizedRecord, net: Callable[..., Any], folder: Path) -> bool:
    """Return whether this net has the values that were folded in; raise where nothing fits."""
    current, recorded = describe_environment(), record.environment
    for software, now, then in (
        ("torch", current.torch, recorded.torch),
        ("processor", current.cpu, recorded.cpu),
        ("Python", current.python.rpartition(".")[0], recorded.python.rpartition(".")[0]),
    ):
        if now != then:
            fault = f"was made for {software} {then}, and here is {now}"
            raise InputError(f"{folder}: {fault}; optimise the net again")
    name = name_of(net)
    if name != record.net or digest_of_weights(net) != record.weights:
        raise InputError(
            f"{folder}: is of a {record.net} with other weights than this {name} has; build the "
            "net as it was, or optimise it again"
        )
    has_values = not record.values or digest_of_weights(net, with_values=True) == record.values
    if not has_values:
        if record.freeze:
            raise InputError(
                f"{folder}: weights were folded in, and those of this net have other values; load "
                "the same weights, or optimise again"
            )
        _log.warning(
            "%s: weights were folded in, and those of this net have other values: it runs in the "
            "fastest backend that reads them; optimise again",
            folder,
        )
    if torch.get_num_threads() != record.num_threads:
        _log.warning(
            "%s was made for %d threads, and torch has %d; call torch.set_num_threads(%d)",
            folder,
            record.num_threads,
            torch.get_num_threads(),
            record.num_threads,
        )
    return has_values
