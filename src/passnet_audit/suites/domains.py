"""Domains in which an unsound graph may be sound: proposed by its ops, and declared."""

from collections.abc import Mapping
from dataclasses import replace

from passnet.core.records.dtypes import is_float
from passnet.graph.fx.operators import name_set
from passnet.graph.spec import Graph, ValueDomain, refs
from passnet.graph.values.effects import last_name
from passnet.graph.values.uses import ops_with_sources

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


def proposals(graph: Graph) -> list[dict[str, ValueDomain]]:
    """Return domains that may suit the ops of a graph, with the fewest arguments first."""
    can_have = {spec.name for spec in graph.tensors if is_float(spec.dtype) and spec.shape}
    together: dict[str, ValueDomain] = {}
    choices: list[dict[str, ValueDomain]] = []
    for op, _, made in ops_with_sources(graph):
        position, domains = _OPERAND_DOMAINS.get(last_name(op.target).strip("_"), (0, ()))
        names = refs(op.args[position]) if op.args[position:] else ()
        sources = sorted(can_have & {source for name in names for source in made.get(name, ())})
        for domain in domains if sources else ():
            choices += [*({name: domain} for name in sources), dict.fromkeys(sources, domain)]
            together = together | choices[-1]
            choices.append(together)
    return sorted({frozenset(each.items()): each for each in choices}.values(), key=len)


def declare(graph: Graph, domains: Mapping[str, ValueDomain]) -> Graph:
    """Return a graph some of whose arguments, by name, have a declared domain."""
    tensors = tuple(
        replace(spec, domain=domains[spec.name], keys=tuple(dict.fromkeys((*spec.keys, "domain"))))
        if spec.name in domains
        else spec
        for spec in graph.tensors
    )
    return replace(graph, tensors=tensors)
