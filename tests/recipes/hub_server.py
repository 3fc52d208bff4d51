"""A server on this machine that speaks the part of the hub's protocol that an upload needs.

Source: huggingface_hub 2.4, `hf_api.py`, `_commit_api.py` and `lfs.py`; the Xet protocol
specification, "Xorb format" and "Shard format", and the requests of hf_xet 1.8.
"""

import base64
import hashlib
import json
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import pyarrow as pa

from tests.http_server import serving

XET_TOKEN = "xet_none"
END_OF_FILES = b"\xff" * 32
HAS_PROOFS, HAS_SHA256 = 1 << 31, 1 << 30


@dataclass
class HubState:
    """A repository of datasets, and the requests for it."""

    name: str
    is_private: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    xorbs: dict[bytes, list[bytes]] = field(default_factory=dict)
    """The chunks of what came by Xet, by the hash of their block."""

    tags: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)


def chunks_of(xorb: bytes) -> Iterator[bytes]:
    """Yield the chunks of a block."""
    at = 0
    while at + 8 <= len(xorb) and xorb[at] == 0:
        packed, scheme, plain = xorb[at + 1 : at + 4], xorb[at + 4], xorb[at + 5 : at + 8]
        num_packed, num_plain = (int.from_bytes(size, "little") for size in (packed, plain))
        chunk = xorb[at + 8 : at + 8 + num_packed]
        if scheme:
            chunk = pa.Codec("lz4").decompress(chunk, num_plain, asbytes=True)
        if scheme == 2:  # the bytes of each four, the first of all in front
            grouped, chunk, start = chunk, bytearray(num_plain), 0
            for first in range(4):
                count = len(range(first, num_plain, 4))
                chunk[first::4] = grouped[start : start + count]
                start += count
        yield bytes(chunk)
        at += 8 + num_packed


def files_of(shard: bytes, xorbs: Mapping[bytes, list[bytes]]) -> Iterator[bytes]:
    """Yield the files that a shard puts together from chunks of blocks."""
    at = 48
    while (shard[at : at + 32]) != END_OF_FILES:
        flags, num_parts = struct.unpack_from("<II", shard, at + 32)
        parts = (struct.unpack_from("<32sIIII", shard, at + 48 * n + 48) for n in range(num_parts))
        yield b"".join(b"".join(xorbs[name][start:stop]) for name, _, _, start, stop in parts)
        at += 48 * (1 + num_parts * (1 + bool(flags & HAS_PROOFS)) + bool(flags & HAS_SHA256))


@contextmanager
def hub(name: str) -> Iterator[tuple[str, HubState]]:
    """Serve a repository until the block ends; yield the address and the state."""
    state = HubState(name)

    class Handler(_HubHandler):
        repository = state

    with serving(Handler) as address:
        yield address, state


class _HubHandler(BaseHTTPRequestHandler):
    repository: HubState

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, value: Any = None, status: int = 200) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_PUT(self) -> None:
        body = self._body()
        self.repository.requests.append(f"PUT {self.path}")
        self.repository.objects[hashlib.sha256(body).hexdigest()] = body
        self._answer()

    def do_GET(self) -> None:
        repository = self.repository
        repository.requests.append(f"GET {self.path}")
        if self.path == f"/api/datasets/{repository.name}/refs":
            tags = [
                {"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": commit}
                for tag, commit in repository.tags.items()
            ]
            self._answer({"branches": [], "converts": [], "tags": tags})
        elif self.path == f"/api/datasets/{repository.name}/xet-write-token/main":
            address, end = f"http://{self.headers['Host']}", int(time.time()) + 3600
            self._answer({"casUrl": address, "accessToken": XET_TOKEN, "exp": end})
        else:
            self._answer({"error": "not found"}, 404)

    def do_POST(self) -> None:
        repository, body = self.repository, self._body()
        repository.requests.append(f"POST {self.path}")
        if self.path.startswith(("/v1/", "/v2/")):
            self._take_by_xet(body)
            return
        repository.tokens.add(self.headers.get("Authorization", ""))
        address = f"http://{self.headers['Host']}"
        api = f"/api/datasets/{repository.name}"
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            assert f"{asked['organization']}/{asked['name']}" == repository.name
            assert asked["type"] == "dataset"
            repository.is_private = asked.get("private", asked.get("visibility") == "private")
            self._answer({"url": f"{address}/datasets/{repository.name}"})
        elif self.path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif self.path.startswith(f"{api}/preupload/main"):
            files = [
                {
                    "path": each["path"],
                    "uploadMode": "lfs" if each["path"].endswith(".parquet") else "regular",
                    "shouldIgnore": False,
                }
                for each in json.loads(body)["files"]
            ]
            self._answer({"files": files})
        elif self.path == f"/datasets/{repository.name}.git/info/lfs/objects/batch":
            objects = [
                each | {"actions": {"upload": {"href": f"{address}/objects/{each['oid']}"}}}
                for each in json.loads(body)["objects"]
            ]
            self._answer({"transfer": "basic", "objects": objects})
        elif self.path.startswith(f"{api}/commit/main"):
            for line in map(json.loads, body.splitlines()):
                self._take(line["key"], line["value"])
            oid = hashlib.sha1(body).hexdigest()
            url = f"{address}/datasets/{repository.name}/commit/{oid}"
            self._answer({"success": True, "commitOid": oid, "commitUrl": url})
        elif self.path.startswith(f"{api}/tag/"):
            repository.tags[json.loads(body)["tag"]] = self.path.rpartition("/")[2]
            self._answer()
        else:
            self._answer({"error": f"not found: {self.path}"}, 404)

    def _take_by_xet(self, body: bytes) -> None:
        """Take a block or a shard; newer forms of both are not known, and the client falls back."""
        repository = self.repository
        assert self.headers["Authorization"] == f"Bearer {XET_TOKEN}"
        if self.path.startswith("/v1/xorbs/default/"):
            words = struct.unpack(">4Q", bytes.fromhex(self.path.rpartition("/")[2]))
            repository.xorbs[struct.pack("<4Q", *words)] = [*chunks_of(body)]
            self._answer({"was_inserted": True})
        elif self.path == "/v1/shards":
            found = [*files_of(body, repository.xorbs)]
            repository.objects |= {hashlib.sha256(each).hexdigest(): each for each in found}
            self._answer({"result": 1})
        else:
            self._answer({"error": f"not found: {self.path}"}, 404)

    def _take(self, key: str, value: dict[str, Any]) -> None:
        """Take one line of a commit."""
        if key == "file":
            self.repository.files[value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            self.repository.files[value["path"]] = self.repository.objects[value["oid"]]
