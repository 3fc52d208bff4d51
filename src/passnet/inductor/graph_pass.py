"""Inductor's setting for passes of others."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass, get_custom_graph_passes

__all__ = ["CustomGraphPass", "pass_added", "passes_that_are_set"]

SETTING = "pre_grad_custom_pass"
"""Its passes get the graphs of Dynamo, and those with a `uuid()` run after a look into caches."""


def passes_that_are_set() -> list[object]:
    """Return the passes that Inductor has now."""
    return [*get_custom_graph_passes(getattr(config, SETTING))]


@contextmanager
def pass_added(own: CustomGraphPass) -> Iterator[None]:
    """Let Inductor run one more pass, the last."""
    with config.patch({SETTING: [*passes_that_are_set(), own]}):
        yield
