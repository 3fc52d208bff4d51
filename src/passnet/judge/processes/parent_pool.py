"""The parents of workers of a run: a trusted one, and a sandboxed one for each candidate."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from passnet.core.hardware import version_of
from passnet.core.records.folders import cache_folder, cached_file, keep_file
from passnet.errors import MeasureError
from passnet.judge.candidate import Candidate
from passnet.judge.processes.loaded_worker import PreparedGraphs
from passnet.judge.processes.sandbox import NO_SANDBOX, Sandbox
from passnet.judge.processes.warm_process import WarmProcess
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.passes.compilation import find_compiler, make_headers
from passnet.passes.folder import INPUT_FOLDER

_Key: TypeAlias = tuple[str, str] | None
_LIBRARIES = "worker"
_SOURCES = Path(__file__).parents[1] / "worker"
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-shared")


class ParentPool:
    """Parents of workers, started on first use or by `start`.

    The reference and the baselines run only torch's code and share one. Every candidate with code
    has its own, and a new one for each pass folder: none can see, slow down or end another's
    processes, or find files that another left. `cache_bytes` of prepared graphs are cached.
    One thread uses a pool; any thread may close it.
    """

    def __init__(
        self,
        num_threads: int = 1,
        sandbox: Sandbox = NO_SANDBOX,
        device: str = "cpu",
        cache_bytes: int = 0,
    ) -> None:
        self.device = device
        self.prepared_graphs = PreparedGraphs(cache_bytes)
        self.sandbox = sandbox
        self.num_threads = num_threads
        self._is_closed = False
        self._parents: dict[_Key, tuple[WorkerParent, str | None]] = {}
        self._warm = WarmProcess(sandbox, num_threads, device) if sandbox.forks else None

    def __enter__(self) -> ParentPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; the next request is refused."""
        self._is_closed = True
        self.end()

    def drop(self) -> None:
        """End all parents; the next request starts new ones."""
        for key in list(self._parents):
            self._drop_one(key)

    def _drop_one(self, key: _Key) -> None:
        held = self._parents.pop(key, None)  # None: another thread is closing it
        if held is not None:
            held[0].close()

    def end(self) -> None:
        """End all processes, also the warm one; the next request starts new ones."""
        self.drop()
        if self._warm is not None:
            self._warm.close()

    @property
    def fence(self) -> Path | None:
        """Return the library that fences tensors; None on a GPU, or if it does not compile."""
        return worker_library("fence") if self.device == "cpu" else None

    def start(self, candidates: Iterable[Candidate]) -> None:
        """Start the parents of some candidates side by side."""
        self.reference()
        for candidate in candidates:
            self.of(candidate)

    def reference(self) -> WorkerParent:
        """Return the parent of the reference's workers."""
        return self._get(None, None, [])

    def of(self, candidate: Candidate) -> WorkerParent:
        """Return the parent of a candidate's workers.

        Without a pass folder it has run no code yet, and will serve the first folder.
        """
        if not candidate.has_code:
            return self.reference()
        root = Path(candidate.root or str(candidate.passes))
        visible = [root, root.parent / INPUT_FOLDER]
        visible.append(cache_folder(_LIBRARIES))
        borrows = candidate.residual != "eager"
        return self._get((candidate.name, str(root)), candidate.passes, visible, borrows)

    def _get(
        self, key: _Key, passes: str | None, visible: list[Path], borrows: bool = False
    ) -> WorkerParent:
        if self._is_closed:
            raise MeasureError("the run was stopped")
        held = self._parents.get(key)
        if held is not None and held[1] not in (None, passes):
            self._drop_one(key)  # with the files of the other folder
            held = None
        if held is not None:
            parent, _ = held
        else:
            folders = [path for path in visible if path.is_dir()]
            is_shared = key is None
            headers = None if is_shared or self.device != "cpu" else make_headers()
            parent = WorkerParent(
                self.num_threads, self.sandbox, folders, self.device, is_shared, headers, borrows,
                self._warm,
            )  # fmt: skip
            parent.start()
        self._parents[key] = parent, passes
        if self._is_closed:  # meanwhile, by another thread
            self._drop_one(key)
            raise MeasureError("the run was stopped")
        return parent


@cache
def worker_library(name: str) -> Path | None:
    """Return a library of workers (`fence`, `op_counter`), cached; None if it does not compile."""
    compiler = find_compiler()
    torch = find_spec("torch")
    if compiler is None or torch is None or torch.origin is None:
        return None
    source = _SOURCES / f"{name}.cpp"
    text = "\0".join(
        [source.read_text("utf-8"), *_FLAGS, compiler, torch.origin, version_of("torch")]
    )
    kept, key = cache_folder(_LIBRARIES), hashlib.sha256(text.encode()).hexdigest()[:32]
    found = cached_file(kept, key, ".so")
    return found or _compiled(compiler, source, Path(torch.origin).parent, kept, key)


def _compiled(compiler: str, source: Path, torch: Path, kept: Path, key: str) -> Path | None:
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        result = Path(folder) / "worker.so"
        where = (f"-I{torch / 'include'}", f"-L{torch / 'lib'}", "-lc10", "-ltorch_cpu")
        command = [compiler, *_FLAGS, str(source), "-o", str(result), *where]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        return keep_file(result, kept, key)
