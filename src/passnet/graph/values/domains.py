"""Domains that arguments are declared to have: values are moved into them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from passnet.core.records.dtypes import Array, from_storage, to_storage
from passnet.graph.spec import Graph, TensorSpec, ValueDomain

SMALLEST = 2.0**-12
"""Least value of a positive argument, so that float16 holds its inverse."""
LARGEST = 1 - 2.0**-8
"""Largest part of a unit, so that no dtype rounds it to more than 1."""


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
