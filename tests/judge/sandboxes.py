"""The sandboxes that tests try."""

import pytest

from passnet.judge.processes import sandbox as module
from passnet.judge.processes.sandbox import WAYS, Sandbox


def name_of(way: Sandbox) -> str:
    return way.name if way.own_users else f"{way.name}-as-root"


def works(way: Sandbox) -> Sandbox:
    failure = way.reason if way.name == "none" else module._failure(way)
    if failure:
        pytest.skip(failure)
    return way


TRIED = [WAYS[0], *(pytest.param(way, marks=pytest.mark.slow) for way in WAYS[1:])]
"""All ways to confine; each starts processes of its own, which takes its time."""
