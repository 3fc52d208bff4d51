"""The settings of the process that a net or a compiler may move, put back."""

import gc
import multiprocessing
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

Setting: TypeAlias = tuple[Callable[[], Any], Callable[[Any], object]]
"""Read a setting of the process, and set it."""


def _set_environment(values: dict[str, str]) -> None:
    for name in {*os.environ} - {*values}:
        del os.environ[name]
    os.environ.update(values)


def _folder() -> Path | None:
    """Return the current folder, None where it was removed."""
    with suppress(FileNotFoundError):
        return Path.cwd()
    return None


def _set_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _attribute(owner: Any, name: str) -> Setting:
    return lambda: getattr(owner, name, None), lambda value: setattr(owner, name, value)


_backends = torch.backends
SETTINGS: tuple[Setting, ...] = (
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
    (_backends.mha.get_fastpath_enabled, _backends.mha.set_fastpath_enabled),
    (_backends.cuda.flash_sdp_enabled, _backends.cuda.enable_flash_sdp),
    (_backends.cuda.mem_efficient_sdp_enabled, _backends.cuda.enable_mem_efficient_sdp),
    (_backends.cuda.math_sdp_enabled, _backends.cuda.enable_math_sdp),
    (np.geterr, lambda modes: np.seterr(**modes)),
    (os.environ.copy, _set_environment),
    (_folder, lambda folder: folder and os.chdir(folder)),
    (sys.path.copy, lambda path: sys.path.__setitem__(slice(None), path)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (lambda: [*warnings.filters], _set_filters),
    (gc.isenabled, lambda is_on: gc.enable() if is_on else gc.disable()),
    (gc.get_threshold, lambda numbers: gc.set_threshold(*numbers)),
    (
        lambda: multiprocessing.get_start_method(allow_none=True),
        lambda method: multiprocessing.set_start_method(method, force=True),
    ),
    *(_attribute(sys, name) for name in ("excepthook", "unraisablehook", "displayhook", "stdout")),
    _attribute(sys, "stderr"),
    _attribute(torch.hub.tqdm, "monitor_interval"),
)
"""Settings that are put back."""


_RANDOM: tuple[Setting, ...] = (
    (torch.get_rng_state, torch.set_rng_state),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
)


@contextmanager
def random_states_kept(of_this_thread: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Put the random generators of the process back at the end, if this thread may have drawn."""
    before = [(write, read()) for read, write in _RANDOM]
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        if of_this_thread():
            for write, value in before:
                write(value)
            if cards:
                torch.cuda.set_rng_state_all(cards)


@contextmanager
def outside_inference_mode() -> Iterator[None]:
    """Leave a caller's inference mode, whose tensors, such as copies of weights, are not plain."""
    with torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext():
        yield


@contextmanager
def process_state_kept(num_threads: int | None = None) -> Iterator[None]:
    """Set the number of torch threads; put every setting back at the end, also random generators.

    Gradients stay on or off as they were, and the environment, paths, warnings and hooks as well.
    The generators are left alone where another thread may draw, which would draw the same again.
    """
    is_alone = threading.active_count() == 1
    before = [read() for read, _ in SETTINGS]
    torch.set_num_threads(num_threads or torch.get_num_threads())
    torch.hub.tqdm.monitor_interval = 0  # or Inductor's bar of progress starts a thread that stays
    try:
        with random_states_kept() if is_alone else nullcontext():
            yield
    finally:
        for (read, write), value in zip(SETTINGS, before, strict=True):
            if not _same(read(), value):
                write(value)


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) in (bool, int, str, dict, list, Path) and one == other)
