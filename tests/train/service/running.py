"""A service as a user has it: `passnet judge serve` in a process of its own."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import encode
from passnet.judge.suite.suite import row_of_graph
from passnet.train.service.client import ServiceAddress
from passnet.train.service.submission import Submission
from tests.bench.runs import command
from tests.judge.folders import GOOD, PATTERN, small_graph

LIST = "sorted_output_pass_rule_names.json"
ROW = row_of_graph(small_graph())


def kernel(number: int = 0, body: str = GOOD) -> dict[str, str]:
    """A pass folder for `small_graph` that no other number's is."""
    return {LIST: '["Fuse"]', "Fuse.py": f"{PATTERN}{body}\n# {number}\n"}


def submitted(number: int = 0, **fields: Any) -> Submission:
    return Submission(ROW.task, kernel(number), graphs=(ROW,), **fields)


@contextmanager
def serving(
    out: Path, *words: object, descriptors: int | None = None
) -> Iterator[tuple[subprocess.Popen[str], ServiceAddress]]:
    """A service that judges on the CPU, and its address; killed at the end."""
    limit = [] if descriptors is None else ["prlimit", f"--nofile={descriptors}"]
    process = subprocess.Popen(
        [*limit, *command("judge", "serve", "--out", out, "--port", 0, "--rules", "open", *words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        found = re.match(r"serving (http://\S+), with the token in (\S+)", line)
        assert found, line + process.stderr.read()
        yield process, ServiceAddress(found[1], Path(found[2]).read_text().strip(), timeout_s=120)
    finally:
        process.kill()
        process.communicate()


def judge_pids(service: int) -> list[int]:
    """The processes of the judges of a service."""
    pids = Path(f"/proc/{service}/task/{service}/children").read_text().split()
    return [
        int(pid) for pid in pids if b"service.judging" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def http_request(address: ServiceAddress, submission: Submission) -> bytes:
    """A submission as the bytes of a request."""
    body = encode(submission)
    head = (
        f"POST /v1/submissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {address.token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
