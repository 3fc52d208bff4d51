"""Domains that arguments are declared to have: values are moved into them, and ops propose them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from passnet.core.records.dtypes import Array, from_storage, is_float, to_storage
from passnet.graph.fx.operators import name_set
from passnet.graph.spec import Graph, TensorSpec, ValueDomain, refs
from passnet.graph.values.effects import last_name
from passnet.graph.values.uses import ops_with_sources

SMALLEST = 2.0**-12
"""Least value of a positive argument, so that float16 holds its inverse."""
LARGEST = 1 - 2.0**-8
"""Largest part of a unit, so that no dtype rounds it to more than 1."""

_OPERAND_DOMAINS: dict[str, tuple[int, tuple[ValueDomain, ...]]] = {
    **dict.fromkeys(
        name_set("acos asin atanh arccos arcsin arctanh"), (0, ("unit", "unit_vectors"))
    ),
    **dict.fromkeys(
        name_set("sqrt rsqrt log log2 log10 log1p pow float_power reciprocal"), (0, ("positive",))
    ),
    **dict.fromkeys(name_set("div truediv"), (1, ("positive",))),
}
"""By the last name of a call: the operand that not every number suits, and domains that may."""


def in_domain(stored: Array, spec: TensorSpec) -> Array:
    """Return the values of an argument moved into its domain, if it has one; those inside stay."""
    if spec.domain is None:
        return stored
    values = from_storage(stored, spec.dtype).astype(np.float64)
    if spec.domain == "positive":
        values = np.maximum(np.abs(values), SMALLEST)
    elif spec.domain == "unit":  # folded at both ends
        values = np.clip(np.abs((values - 1) % 4 - 2) - 1, -LARGEST, LARGEST)
    else:
        for dim in range(-min(2, values.ndim), 0):
            norms = np.linalg.norm(values, axis=dim, keepdims=True)
            values = values / np.maximum(1, norms / LARGEST)
    return to_storage(values, spec.dtype)


def declare(graph: Graph, domains: Mapping[str, ValueDomain]) -> Graph:
    """Return a graph some of whose arguments, by name, have a declared domain."""
    tensors = tuple(
        replace(spec, domain=domains[spec.name], keys=tuple(dict.fromkeys((*spec.keys, "domain"))))
        if spec.name in domains
        else spec
        for spec in graph.tensors
    )
    return replace(graph, tensors=tensors)


def proposals(graph: Graph) -> list[dict[str, ValueDomain]]:
    """Return domains that may suit the ops of a graph, with the fewest arguments first."""
    can_have = {spec.name for spec in graph.tensors if is_float(spec.dtype) and spec.shape}
    together: dict[str, ValueDomain] = {}
    found: list[dict[str, ValueDomain]] = []
    for op, _, made in ops_with_sources(graph):
        position, domains = _OPERAND_DOMAINS.get(last_name(op.target).strip("_"), (0, ()))
        names = refs(op.args[position]) if op.args[position:] else ()
        sources = sorted(can_have & {source for name in names for source in made.get(name, ())})
        for domain in domains if sources else ():
            found += [*({name: domain} for name in sources), dict.fromkeys(sources, domain)]
            together = together | found[-1]
            found.append(together)
    return sorted({frozenset(each.items()): each for each in found}.values(), key=len)
