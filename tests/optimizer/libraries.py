"""Libraries of passes for tests, with records that nobody measured."""

import json
from dataclasses import replace
from typing import Any

from passnet.core.hardware import Hardware
from passnet.graph.spec import Graph, TensorSpec
from passnet.judge.settings import RunSettings
from passnet.judge.trial import Trial
from passnet.optimizer.choose.judging import JudgedPass, pass_outcome
from passnet.passes.files import Files
from passnet.passes.library.store import PassOutcome, RangeKey, range_key
from tests.graph.programs import program_of

HERE = Hardware("cpu", "a processor", 1, "2.13")
TRIAL = Trial(
    "range", "range", "passes", "ok", smallest_t=-6, speedup=2.0, speedup_low=1.9,
    speedup_high=2.1, reference_ms=1.0, candidate_ms=0.5,
)  # fmt: skip

PASS = """\
import torch

def pattern(a, b):
    x = torch.tanh(a)
    return x * b

def replacement_args(a, b):
    return a, b

{guard}

def replacement(a, b):
    return {result}

def replacement_func():
    return replacement
"""
GUARD = "guards = ('a: shape (4, 8)',)"


def tanh_mul(shape: tuple[int, ...] = (4, 8)) -> RangeKey:
    """tanh(a) * b."""
    program = program_of("x = torch.tanh(a)", "y = x * b", returns="(y,)")
    return range_key(Graph(program, tuple(TensorSpec(name, shape, "float32") for name in "ab")))


def folder(result: str = "a.tanh() * b", guard: str = GUARD) -> Files:
    """A pass folder for `tanh_mul`."""
    names = json.dumps(["Fuse"])
    return {
        "sorted_output_pass_rule_names.json": names,
        "Fuse.py": PASS.format(result=result, guard=guard),
    }


def trial(**fields: Any) -> Trial:
    """A trial that wins, but for some fields."""
    return replace(TRIAL, **fields)


def outcome(**fields: Any) -> PassOutcome:
    """The outcome of a trial that wins, but for some fields."""
    return pass_outcome(JudgedPass(folder(), trial(**fields)), RunSettings())
