"""The Ray cluster of a run: found within seconds, and sent passnet's own code."""

import hashlib
import logging
import os
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from passnet.errors import InputError, boundary

CONNECT_TIMEOUT_S = 5.0
"""Longest wait for a cluster's port to open, and for its answer."""

_HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first bytes of gRPC: HTTP/2's preface, and a frame of settings (type 4) without any."""


def ray_cluster(num_cpus: int) -> Any:
    """Return `ray`, connected to the running cluster or to a new one on this machine.

    Its workers get this process's passnet. Raises InputError if Ray is missing, or the cluster that
    RAY_ADDRESS names does not answer.
    """
    if find_spec("ray") is None:
        raise InputError("Ray is not installed; pip install 'passnet[ray]'")
    with boundary(InputError, "Ray cannot be imported"):
        import ray
    if ray.is_initialized():
        return ray
    packages = sorted(Path(__file__).parents[3].glob("passnet*/__init__.py"))
    code = {"py_modules": [str(path.parent) for path in packages], "excludes": ["**/__pycache__"]}
    ours: Any = {"log_to_driver": False, "logging_level": logging.ERROR, "runtime_env": code}
    with boundary(InputError, "Ray does not start"):
        # It prints lost workers and nodes to stdout, where the output of commands goes.
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
        try:
            if address := _answering_address():
                ray.init(address, **ours)
            else:
                ray.init("local", num_cpus=num_cpus, include_dashboard=False, **ours)
        except SystemExit as cause:  # where it gives up
            raise InputError("Ray ended as it started; see its logs in /tmp/ray") from cause
    return ray


def _answering_address() -> str | None:
    """Return the address of the running cluster; None where none was named and none answers."""
    from ray._private.services import canonicalize_bootstrap_address

    address: str | None = os.environ.get("RAY_ADDRESS")
    named = address
    if not (named or "").startswith("ray://"):
        with suppress(ConnectionError):  # none is running
            address = canonicalize_bootstrap_address(named or "auto")
    if not address:
        return None
    host, _, port = address.removeprefix("ray://").rpartition(":")
    reason = "something else than Ray listens there"
    try:
        with socket.create_connection((host.strip("[]"), port), CONNECT_TIMEOUT_S) as stream:
            stream.sendall(_HTTP2_GREETING)
            if os.environ.get("RAY_USE_TLS", "0") != "0" or stream.recv(9)[3:4] == b"\4":
                return address
    except OSError as cause:
        reason = cause.strerror or str(cause)
    if not named:  # the cluster ended, and left its address
        return None
    raise InputError(
        f"no Ray cluster answers at {named}, as RAY_ADDRESS says: {reason}; start one there with "
        "`ray start --head`, or correct RAY_ADDRESS"
    )


def code_hash() -> str:
    """Return a SHA-256 over passnet's modules as this process finds them."""
    folder = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def ray_sentence(cause: Exception) -> str:
    r"""Return the first sentence of one of Ray's errors that says anything.

    Examples:
        >>> ray_sentence(RuntimeError("The actor died unexpectedly.\n\tpid: 1\nIts node died. Id:"))
        'Its node died'
    """
    lines = [line for line in str(cause).splitlines() if line.strip() and not line[0].isspace()]
    telling = [line for line in lines if not line.startswith("The actor died unexpectedly")]
    return next(iter(telling or lines), type(cause).__name__).partition(". ")[0].rstrip(".")
