"""A net in a process with handlers, filters and settings of its own; optimisation leaves them."""

import gc
import locale
import logging
import os
import signal
import sys
import threading
import warnings

import numpy as np
import torch
from torch import nn

KIND = "process"

STATES = []

HANDLER = logging.NullHandler()
BEFORE = (gc.get_threshold(), sys.getrecursionlimit(), sys.excepthook, list(warnings.filters))


def on_signal(number, frame):
    """Do nothing."""


def set_all():
    gc.set_threshold(50_000, 20, 20)
    sys.setrecursionlimit(3000)
    sys.excepthook = lambda *error: None
    warnings.filterwarnings("ignore", message="a warning of the user")
    signal.signal(signal.SIGUSR1, on_signal)
    signal.signal(signal.SIGCHLD, on_signal)
    logging.getLogger().addHandler(HANDLER)
    logging.getLogger().setLevel(logging.ERROR)
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    np.seterr(all="ignore")
    np.set_printoptions(precision=3)
    os.umask(0o027)


def put_back():
    gc.set_threshold(*BEFORE[0])
    sys.setrecursionlimit(BEFORE[1])
    sys.excepthook = BEFORE[2]
    warnings.filters[:] = BEFORE[3]
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    logging.getLogger().removeHandler(HANDLER)
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("torch").setLevel(logging.NOTSET)
    np.seterr(all="warn")
    np.set_printoptions(precision=8)
    os.umask(0o022)


def make():
    set_all()
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval()


def mask():
    now = os.umask(0)
    os.umask(now)
    return now


def state(net):
    root, own = logging.getLogger(), logging.getLogger("torch")
    STATES.append(
        {
            "collector": (gc.isenabled(), gc.get_threshold()),
            "recursion": sys.getrecursionlimit(),
            "switches": sys.getswitchinterval(),
            "hooks": [id(hook) for hook in (sys.excepthook, threading.excepthook, sys.displayhook)],
            "filters": [str(item) for item in warnings.filters],
            "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
            "timer": signal.getitimer(signal.ITIMER_REAL),
            "logging": (
                root.level,
                [id(h) for h in root.handlers],
                root.disabled,
                root.manager.disable,
            ),
            "logging of torch": (own.level, own.propagate, own.disabled),
            "numpy": (np.geterr(), np.get_printoptions()),
            "umask": mask(),
            "locale": locale.setlocale(locale.LC_ALL),
            "processors": sorted(os.sched_getaffinity(0)),
            "nice": os.nice(0),
            "streams": [id(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        }
    )
    if len(STATES) == 2:  # the net was optimised
        change(net)
    return STATES[-1]


def example():
    return (torch.randn(4, 16),)


def change(net):
    put_back()


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "zeros", (torch.zeros(4, 16),)
    yield "another batch", (torch.randn(5, 16),)
