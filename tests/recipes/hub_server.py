"""A server on this machine that speaks the part of the hub's protocol that an upload needs.

Source: huggingface_hub 2.4, `hf_api.py`, `_commit_api.py` and `lfs.py`.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.http_server import serving


@dataclass
class HubState:
    """A repository of datasets, and the requests for it."""

    name: str
    is_private: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)


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
        else:
            self._answer({"error": "not found"}, 404)

    def do_POST(self) -> None:
        repository, body = self.repository, self._body()
        repository.requests.append(f"POST {self.path}")
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

    def _take(self, key: str, value: dict[str, Any]) -> None:
        """Take one line of a commit."""
        if key == "file":
            self.repository.files[value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            self.repository.files[value["path"]] = self.repository.objects[value["oid"]]
