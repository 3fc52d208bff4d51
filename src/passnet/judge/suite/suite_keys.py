"""The op sequences and structures that suites evaluate on: no row to train on may share one."""

from collections.abc import Iterable

from passnet.data.dataset.splits import SuiteKeys
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.suite.suite import load_suite


def read_suite_keys(names: Iterable[str]) -> SuiteKeys:
    """The op sequences and structures of suites, given by their names or files.

    Raises:
        SuiteError: there is no such suite.
        InputError: two suites have one name.
    """
    keys = SuiteKeys({}, {}, {})
    for name in names:
        suite = load_suite(name)
        if keys.hashes.get(suite.name, suite.content_hash) != suite.content_hash:
            raise InputError(f"two suites are named {suite.name}; rename one")
        keys.hashes[suite.name] = suite.content_hash
        for task in suite.tasks:
            keys.sequences.setdefault(task.ops, suite.name)
        for graph in suite.graphs:
            keys.structures.setdefault(fingerprints(graph.graph).structure, suite.name)
    return keys
